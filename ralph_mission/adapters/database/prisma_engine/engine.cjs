// A stand-in for Prisma's `query-engine` 5.17.0 where that cannot be had: the very same engine, built for WebAssembly,
// from @prisma/client. The client of Python speaks GraphQL to it; the engine here takes Prisma's JSON protocol.
'use strict';
const crypto = require('node:crypto'), fs = require('node:fs'), http = require('node:http'), path = require('node:path');
const { createRequire } = require('node:module');

const COMMIT = '393aa359c9ad4a4bb28630fb5613f9c281cde053';
const LARGEST = Number(process.env.RALPH_LARGEST_ANSWER || 16e6); // characters
const argv = process.argv.slice(2);
if (argv.includes('--version')) { console.log(`query-engine ${COMMIT}`); process.exit(0); }

const need = createRequire(path.join(process.env.RALPH_NODE_MODULES, 'of.js'));
const runtime = path.dirname(need.resolve('@prisma/client/runtime/library.js'));
const datamodel = fs.readFileSync(process.env.PRISMA_DML_PATH, 'utf8');

// --- GraphQL to JSON -------------------------------------------------------------------

// Only one SELECT with its values. The client can ask for more; this engine does not.
function asJson(text) {
  const { parse } = need('graphql');
  const field = parse(text, { noLocation: true }).definitions[0].selectionSet.selections[0];
  const given = Object.fromEntries(field.arguments.map((one) => [one.name.value, one.value.value]));
  if (field.name.value !== 'queryRaw' || !/^SELECT\s/.test(given.query)) throw new Error('not a question');
  return { action: 'queryRaw', query: { arguments: { query: given.query, parameters: given.parameters }, selection: {} } };
}

function reply(text) {
  if (text.length > LARGEST) return { errors: [{ user_facing_error: { error_code: 'TOO_LARGE' } }] };
  const said = JSON.parse(text);
  if (said.errors?.length) return { errors: said.errors };
  return { data: { result: Object.values(said.data)[0] } };
}

// --- the engine --------------------------------------------------------------------------

async function engine() {
  const built = need(path.join(runtime, 'query_engine_bg.postgresql.js'));
  const { Pool } = need('pg'), { PrismaPg } = need('@prisma/adapter-pg'), { bindAdapter } = need('@prisma/driver-adapter-utils');
  const code = fs.readFileSync(path.join(runtime, 'query_engine_bg.postgresql.wasm'));
  built.__wbg_set_wasm(new WebAssembly.Instance(new WebAssembly.Module(code), { './query_engine_bg.js': built }).exports);
  if (built.getBuildTimeInfo().commit !== COMMIT) throw new Error('another engine');
  const url = new URL(process.env.DATABASE_URL);
  const schema = url.searchParams.get('schema') || undefined;
  for (const name of ['schema', 'connection_limit', 'pool_timeout', 'socket_timeout']) url.searchParams.delete(name);
  url.searchParams.set('uselibpqcompat', 'true'); // sslmode means here what it means everywhere
  const pool = new Pool({ connectionString: url.href, max: 1 });
  pool.on('error', () => {}); // an idle connection that the server dropped; the next question makes another
  const made = new built.QueryEngine(
    { datamodel, logLevel: 'error', logQueries: false, env: {}, ignoreEnvVarErrors: true, datasourceOverrides: {}, configDir: '.' },
    () => {}, bindAdapter(new PrismaPg(pool, { schema })));
  await made.connect('{}');
  return { made, pool };
}

const vouched = (request) => {
  const said = Buffer.from(String(request.headers['x-ralph'] || '')), wanted = Buffer.from(process.env.RALPH_ENGINE_KEY);
  return said.length === wanted.length && crypto.timingSafeEqual(said, wanted);
};

async function main() {
  const { made, pool } = await engine();
  const answer = async (request, body) => {
    if (!vouched(request)) return null; // anybody on this machine can connect
    if (request.url === '/status') return { status: 'ok' };
    if (request.method !== 'POST' || request.url !== '/') return null;
    return reply(await made.query(JSON.stringify(asJson(JSON.parse(body).query)), '{}', undefined));
  };
  const server = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk)).on('end', () => answer(request, Buffer.concat(chunks).toString()).then(
      (said) => { response.writeHead(said ? 200 : 404, { 'content-type': 'application/json' }); response.end(JSON.stringify(said ?? {})); },
      () => { response.writeHead(500); response.end(); }));
  });
  server.listen(Number(argv[argv.indexOf('-p') + 1]), '127.0.0.1');
  const parent = process.ppid; // never outlive who started it
  setInterval(() => process.ppid !== parent && process.exit(0), 500).unref();
  const stop = () => { server.close(); server.closeAllConnections(); pool.end().finally(() => process.exit(0)); setTimeout(() => process.exit(0), 500).unref(); };
  process.on('SIGINT', stop).on('SIGTERM', stop);
}

main().catch(() => process.exit(1)); // what went wrong may hold the address

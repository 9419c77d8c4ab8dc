// Loaded into each process of Node.js before a project's tests (`--require`): notes the hosts that they look for, and
// the files under test that a test reads as text, or whose functions it turns into text. What loads or transforms code
// is a module of Node.js or a package: a file of the repository that does so is a test that reads source.
'use strict'
const fs = require('node:fs')
const net = require('node:net')
const dns = require('node:dns')
const url = require('node:url')
const path = require('node:path')
const { syncBuiltinESMExports } = require('node:module')

const hosts = process.env.RALPH_PROBE_HOSTS
const sources = process.env.RALPH_PROBE_SOURCES
const root = `${process.env.RALPH_PROBE_ROOT}/`
const watched = new Map(JSON.parse(process.env.RALPH_PROBE_WATCHED).map((name) => [root + name, name]))
const append = fs.appendFileSync
const local = /^(localhost|.*\.localhost|127\.\d+\.\d+\.\d+|::1|::|0\.0\.0\.0|)$/
const test = /(^|\/)(tests?|testing|specs?|__tests__|e2e|features)\/|[._-](tests?|spec)\.\w+$/

function note (host) {
  if (typeof host === 'string' && !local.test(host)) append(hosts, `${host}\n`)
}

// Whether whoever called into this file is a test of the repository.
function isAskedByTest () {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 12
  const lines = String(new Error().stack).split('\n').filter((line) => line.includes(':') && !line.includes(__filename))
  Error.stackTraceLimit = limit
  const position = lines.findIndex((line) => !line.includes('node:'))
  const caller = lines[position] || ''
  if (lines.slice(0, position).some((line) => line.includes('node:internal/modules'))) return false
  const inside = caller.includes(root) && !caller.includes('/node_modules/')
  return inside && test.test(caller.slice(caller.indexOf(root) + root.length).replace(/:\d+:\d+\)?$/, ''))
}

function noteSource (file) {
  let full = file
  if (file instanceof URL) full = url.fileURLToPath(file)
  if (typeof full !== 'string' && !Buffer.isBuffer(full)) return
  const name = watched.get(path.resolve(String(full)))
  if (name && isAskedByTest()) append(sources, `${name}\n`)
}

for (const owner of [fs, fs.promises]) {
  for (const name of ['readFileSync', 'readFile', 'openSync', 'open', 'createReadStream']) {
    const own = owner[name]
    if (typeof own !== 'function') continue
    owner[name] = function (file, ...rest) {
      noteSource(file)
      return own.call(this, file, ...rest)
    }
    Object.assign(owner[name], own)
  }
}

const told = Function.prototype.toString
// eslint-disable-next-line no-extend-native
Function.prototype.toString = function toString () {
  if (isAskedByTest()) append(sources, 'a function\n')
  return told.call(this)
}

const connect = net.Socket.prototype.connect
net.Socket.prototype.connect = function (...args) {
  const first = Array.isArray(args[0]) ? args[0][0] : args[0]
  if (first && typeof first === 'object') note(first.path ? '' : first.host)
  else if (typeof args[1] === 'string') note(args[1])
  return connect.apply(this, args)
}

const lookup = dns.lookup
dns.lookup = function (host, ...rest) {
  note(host)
  return lookup.call(this, host, ...rest)
}

syncBuiltinESMExports()

-- A role that reads and can do nothing else: psql -v ON_ERROR_STOP=1 -d NAME -f ralph-reader.sql
-- Run it as a superuser, in the database that is watched; a second time changes nothing.
-- It has no password yet, so nobody can log in: \password ralph_reader
-- Watched tables are in other schemas than public? Name them in the list below.
BEGIN;

DO $$
DECLARE
  place text;
  owner text;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ralph_reader') THEN
    CREATE ROLE ralph_reader LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 5;
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO ralph_reader', current_database());
  FOREACH place IN ARRAY ARRAY['public'] LOOP
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO ralph_reader', place);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO ralph_reader', place);
    -- Tables that their owners make later can be read too.
    FOR owner IN SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = place LOOP
      EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT ON TABLES TO ralph_reader',
        owner, place);
    END LOOP;
  END LOOP;
END $$;

-- Habits, not walls: the walls are the grants above.
ALTER ROLE ralph_reader SET default_transaction_read_only = on;
ALTER ROLE ralph_reader SET statement_timeout = '30s';
ALTER ROLE ralph_reader SET lock_timeout = '1s';
ALTER ROLE ralph_reader SET idle_in_transaction_session_timeout = '60s';

-- Before PostgreSQL 15 everyone may make tables in public, and so may this role. When nobody else needs that:
-- REVOKE CREATE ON SCHEMA public FROM PUBLIC;

COMMIT;

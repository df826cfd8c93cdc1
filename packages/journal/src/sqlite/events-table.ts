/** Events and the keys of appends. Both only grow; the one allowed change is to purge a body. */
export const EVENTS_TABLE = `
CREATE TABLE events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL,
  version INTEGER NOT NULL,
  id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  author TEXT NOT NULL,
  type TEXT NOT NULL,
  v INTEGER NOT NULL,
  body TEXT,
  body_hash TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  UNIQUE (stream, version)
) STRICT;

CREATE TABLE append_keys (
  key TEXT PRIMARY KEY,
  content_hash TEXT NOT NULL,
  stream TEXT NOT NULL,
  first_version INTEGER NOT NULL,
  last_version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER events_keep BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'events are never deleted');
END;
CREATE TRIGGER events_fixed
BEFORE UPDATE OF position, stream, version, id, at, author, type, v, body_hash, prev_hash, hash ON events BEGIN
  SELECT RAISE(ABORT, 'events never change');
END;
CREATE TRIGGER events_purge BEFORE UPDATE OF body ON events WHEN NEW.body IS NOT NULL BEGIN
  SELECT RAISE(ABORT, 'a body can only be purged');
END;
CREATE TRIGGER append_keys_keep BEFORE DELETE ON append_keys BEGIN
  SELECT RAISE(ABORT, 'keys are never deleted');
END;
CREATE TRIGGER append_keys_fixed BEFORE UPDATE ON append_keys BEGIN
  SELECT RAISE(ABORT, 'keys never change');
END;
`;

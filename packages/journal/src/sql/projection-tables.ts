/** The tables of the projections; they can be dropped and rebuilt from events. */
export const PROJECTION_TABLES = `
CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  origin TEXT NOT NULL,
  title TEXT,
  name TEXT,
  agent_name TEXT,
  preview TEXT,
  forked_from TEXT,
  forked_version INTEGER,
  parent_thread TEXT,
  parent_turn TEXT,
  parent_item TEXT,
  depth INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  turn_count INTEGER NOT NULL,
  last_turn_status TEXT,
  last_position INTEGER NOT NULL,
  is_ephemeral INTEGER,
  is_archived INTEGER,
  settings TEXT,
  git_info TEXT,
  provider TEXT,
  log_entries INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_output_tokens INTEGER NOT NULL DEFAULT 0,
  duration_ms INTEGER NOT NULL DEFAULT 0,
  deleted_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX threads_by_activity ON threads (last_position) WHERE deleted_at IS NULL;
CREATE INDEX threads_by_workspace ON threads (workspace, last_position) WHERE deleted_at IS NULL;
CREATE INDEX threads_deleted ON threads (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX threads_ephemeral ON threads (id) WHERE is_ephemeral IS NOT NULL;
CREATE INDEX threads_by_name ON threads (name, last_position) WHERE name IS NOT NULL;
CREATE INDEX threads_by_agent_name ON threads (agent_name, id) WHERE agent_name IS NOT NULL;
CREATE INDEX threads_by_parent ON threads (forked_from, last_position) WHERE forked_from IS NOT NULL;
CREATE INDEX threads_by_starter ON threads (parent_thread, id) WHERE parent_thread IS NOT NULL;
CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  status TEXT NOT NULL,
  admitted_version INTEGER NOT NULL,
  admitted_position INTEGER NOT NULL,
  ended_version INTEGER,
  failure_code TEXT,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  cached_input_tokens INTEGER NOT NULL DEFAULT 0,
  cache_write_input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_output_tokens INTEGER NOT NULL DEFAULT 0,
  duration_ms INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX turns_by_thread ON turns (thread_id, admitted_version);
CREATE INDEX turns_open ON turns (admitted_position) WHERE status = 'open';
CREATE TABLE leases (
  subject TEXT PRIMARY KEY,
  stream TEXT NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE queued_turns (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  queued_version INTEGER NOT NULL,
  queued_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX queued_turns_by_thread ON queued_turns (thread_id, queued_version);
CREATE TABLE thread_envelopes (
  thread_id TEXT PRIMARY KEY,
  id TEXT NOT NULL,
  envelope TEXT NOT NULL,
  hash TEXT NOT NULL,
  ceiling TEXT,
  stack TEXT NOT NULL,
  cause TEXT NOT NULL,
  entered_version INTEGER NOT NULL,
  entered_at INTEGER NOT NULL,
  left_version INTEGER,
  calls INTEGER NOT NULL,
  bytes_written INTEGER NOT NULL,
  turn_id TEXT,
  turn_hops INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  folder TEXT NOT NULL,
  workspace TEXT NOT NULL,
  thread_id TEXT,
  parent_id TEXT,
  priority INTEGER NOT NULL,
  next_at INTEGER,
  wait_cause TEXT,
  is_exclusive INTEGER NOT NULL,
  is_held INTEGER NOT NULL,
  created_position INTEGER NOT NULL,
  updated_position INTEGER NOT NULL,
  record TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_creation ON tasks (created_position);
CREATE INDEX tasks_by_state ON tasks (state, created_position);
CREATE INDEX tasks_queue ON tasks (priority DESC, created_position, next_at, is_exclusive, folder)
  WHERE next_at IS NOT NULL AND is_held = 0;
CREATE INDEX tasks_next ON tasks (next_at) WHERE next_at IS NOT NULL AND is_held = 0;
CREATE INDEX tasks_waiting ON tasks (wait_cause, created_position) WHERE wait_cause IS NOT NULL;
CREATE INDEX tasks_held ON tasks (folder, is_exclusive) WHERE is_held = 1;
CREATE INDEX tasks_by_name ON tasks (name, created_position);
CREATE INDEX tasks_by_thread ON tasks (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent_id, created_position) WHERE parent_id IS NOT NULL;
CREATE TABLE notifications (
  id TEXT PRIMARY KEY,
  sink TEXT NOT NULL,
  event TEXT NOT NULL,
  task_id TEXT,
  subject_position INTEGER NOT NULL,
  state TEXT NOT NULL,
  tries INTEGER NOT NULL,
  next_at INTEGER,
  message TEXT,
  payload TEXT NOT NULL,
  queued_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notifications_by_sink ON notifications (sink, state, subject_position, id);
CREATE TABLE sinks (
  name TEXT PRIMARY KEY,
  read_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_days (
  day TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  workspace TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  requests INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  cached_input_tokens INTEGER NOT NULL,
  cache_write_input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  reasoning_output_tokens INTEGER NOT NULL,
  cost_usd REAL NOT NULL,
  PRIMARY KEY (day, provider, model, workspace, thread_id, task_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_days_by_thread ON usage_days (thread_id);
CREATE INDEX usage_days_by_task ON usage_days (task_id);
CREATE TABLE open_requests (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  task_id TEXT NOT NULL,
  workspace TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX open_requests_by_thread ON open_requests (thread_id);
CREATE TABLE open_items (
  thread_id TEXT NOT NULL,
  item_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  type TEXT NOT NULL,
  text TEXT,
  started_version INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  output_at INTEGER,
  PRIMARY KEY (thread_id, item_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE open_approvals (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  asked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX open_approvals_by_thread ON open_approvals (thread_id);
CREATE TABLE marks (
  stream TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (stream, kind, name, version)
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  author TEXT NOT NULL,
  from_thread TEXT,
  to_thread TEXT NOT NULL,
  sent_version INTEGER NOT NULL,
  received_version INTEGER NOT NULL,
  received_position INTEGER NOT NULL,
  given_turn TEXT,
  answer_by INTEGER,
  outcome TEXT,
  settled_stream TEXT,
  settled_version INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_to ON messages (to_thread, at);
CREATE INDEX messages_from ON messages (from_thread, at) WHERE from_thread IS NOT NULL;
CREATE INDEX messages_of_users ON messages (author, at) WHERE from_thread IS NULL;
CREATE INDEX messages_waiting ON messages (to_thread, received_version)
  WHERE given_turn IS NULL AND outcome IS NULL AND received_version > 0;
CREATE INDEX messages_loose ON messages (id) WHERE outcome IS NULL AND (received_version = 0 OR kind = 'ask');
CREATE TABLE evidence (
  position INTEGER PRIMARY KEY,
  stream TEXT NOT NULL,
  at INTEGER NOT NULL,
  author TEXT NOT NULL,
  type TEXT NOT NULL,
  claim TEXT NOT NULL,
  turn TEXT,
  task TEXT,
  subject_type TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  envelope TEXT,
  reply_to TEXT
) STRICT;
CREATE INDEX evidence_by_stream ON evidence (stream);
CREATE INDEX evidence_by_author ON evidence (author);
CREATE INDEX evidence_by_type ON evidence (type);
CREATE INDEX evidence_by_claim ON evidence (claim);
CREATE INDEX evidence_by_turn ON evidence (turn) WHERE turn IS NOT NULL;
CREATE INDEX evidence_by_task ON evidence (task) WHERE task IS NOT NULL;
CREATE INDEX evidence_by_subject_type ON evidence (subject_type);
CREATE INDEX evidence_by_subject ON evidence (subject_type, subject_id);
CREATE INDEX evidence_by_envelope ON evidence (envelope) WHERE envelope IS NOT NULL;
CREATE INDEX evidence_by_reply ON evidence (reply_to) WHERE reply_to IS NOT NULL;
CREATE TABLE evidence_tag (
  tag TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (tag, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE evidence_ref (
  type TEXT NOT NULL,
  id TEXT NOT NULL,
  position INTEGER NOT NULL,
  PRIMARY KEY (type, id, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE evidence_spans (
  first_position INTEGER PRIMARY KEY,
  span INTEGER NOT NULL
) STRICT;
CREATE TABLE evidence_state (
  stream TEXT PRIMARY KEY,
  envelope TEXT,
  task TEXT,
  span INTEGER
) STRICT, WITHOUT ROWID;
`;

-- A store as schema 1 wrote it: never edit, it stands for stores that exist.
PRAGMA application_id = 1751475308;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE append_keys (
  key TEXT PRIMARY KEY,
  content_hash TEXT NOT NULL,
  stream TEXT NOT NULL,
  first_version INTEGER NOT NULL,
  last_version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "append_keys" VALUES('turn.completed:t-a1','06cd9a6e6f6c478bed2a2f23d00dd7549d3d03755b6dc72f86e552aed9236091','01890000-0000-7000-8000-00000000000a',3,4);
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
INSERT INTO "events" VALUES(1,'01890000-0000-7000-8000-00000000000a',1,'evt_01a1de9f-2ac8-7767-9df1-ac8726ada966',1700000001000,'user','thread.created',1,'{"origin":"exec","type":"thread.created","v":1,"workspace":"/w"}','0f476174b62598cc4a15f5af7f9ffec95549c7a4699f039fab23363fe23de00d','8b68396673d237b1461399ea614d8247d0e1ba8b95b85d1afde02beb944afe03','fdd06571f5d554aa795dfdc4a7d9e30acec76d2be6ebaa40a2e283d8d69b9ad7');
INSERT INTO "events" VALUES(2,'01890000-0000-7000-8000-00000000000a',2,'evt_01a1de9f-2acd-7868-a909-94d963378117',1700000001000,'user','turn.admitted',1,'{"holder":{"bootId":"b","pid":1,"pidNamespace":"p","startTicks":"1"},"input":[{"text":"mend  the\ntests\u0007 please","type":"text"}],"settings":{"approvalPolicy":"never","model":"m","networkAccess":false,"provider":"scripted","sandboxMode":"read-only","writableRoots":[]},"turnId":"t-a1","type":"turn.admitted","v":1}','4c91e70f993a6a4822a475c67bbdf845ad9b18ed73e75a6f1e7399e182c1e0e1','fdd06571f5d554aa795dfdc4a7d9e30acec76d2be6ebaa40a2e283d8d69b9ad7','fe87ae133466c8614b2ddb18183a313c87234d45b241ad651bc0f02ac3ddbae6');
INSERT INTO "events" VALUES(3,'01890000-0000-7000-8000-00000000000a',3,'evt_01a1de9f-2add-75a6-82ec-3bb88868eaef',1700000002000,'agent:embedded','item.completed',1,'{"item":{"id":"item one","text":"one","type":"agentMessage"},"turnId":"t-a1","type":"item.completed","v":1}','aef309dac8d7214dbca8d96384f582e5b470b63a5a00c4753390a13988fa1919','fe87ae133466c8614b2ddb18183a313c87234d45b241ad651bc0f02ac3ddbae6','2aa9ed647d5feb9d3f983857919399b68927845521f9c71653f4aa030dc685bd');
INSERT INTO "events" VALUES(4,'01890000-0000-7000-8000-00000000000a',4,'evt_01a1de9f-2ade-78bc-929a-3ff319046541',1700000002000,'agent:embedded','turn.completed',1,'{"durationMs":1,"failure":{"code":"provider.cut","message":"it failed"},"status":"failed","turnId":"t-a1","type":"turn.completed","usage":{"cacheWriteInputTokens":0,"cachedInputTokens":0,"inputTokens":0,"outputTokens":0,"reasoningOutputTokens":0},"v":1}','b6100dc29979f0c563de1ccef88e2d4877ea2cecc29830a058c6c60793909752','2aa9ed647d5feb9d3f983857919399b68927845521f9c71653f4aa030dc685bd','4d0bae283f12f5f80f68b85dac9f13f85eeb9596097f3f226f40b01d34a7baf5');
INSERT INTO "events" VALUES(5,'01890000-0000-7000-8000-00000000000b',1,'evt_01a1de9f-2ae2-776e-8575-6a37c62a8203',1700000003000,'user','thread.created',1,'{"origin":"exec","title":"second","type":"thread.created","v":1,"workspace":"/other"}','da80be9045a2448f0cd18ab1d39ec1d0a55fd2d1bae97603a4faad5f76da3bab','53fe436d120bbf220cbf9b92a4217f413d1da2ca83fed68c1cebecb41059d53a','5e0a86d351cdede596b4f6408ae9cb3565ed06a637bee8d500ef234317125571');
INSERT INTO "events" VALUES(6,'01890000-0000-7000-8000-00000000000a',5,'evt_01a1de9f-2aea-7f07-abe6-48668aa36bee',1700000004000,'user','turn.admitted',1,'{"holder":{"bootId":"b","pid":1,"pidNamespace":"p","startTicks":"1"},"input":[{"text":"do t-a2","type":"text"}],"settings":{"approvalPolicy":"never","model":"m","networkAccess":false,"provider":"scripted","sandboxMode":"read-only","writableRoots":[]},"turnId":"t-a2","type":"turn.admitted","v":1}','2046bb401eb6363d8ee36e8e416c37cc4badd02fdd06c0a486666af770a56ca8','4d0bae283f12f5f80f68b85dac9f13f85eeb9596097f3f226f40b01d34a7baf5','542ac990949451c8d15bb25d62d9de0d95801a52d3bf4b4f0cbcdc1192b1bd5c');
INSERT INTO "events" VALUES(7,'01890000-0000-7000-8000-00000000000a',6,'evt_01a1de9f-2aeb-7612-8c81-28a8c87a2606',1700000004000,'user','item.completed',1,'{"item":{"id":"item two","text":"two","type":"agentMessage"},"turnId":"t-a2","type":"item.completed","v":1}','ee7bbe9613aa6f9a0e122a697d718c58fe9990c1eb7cc76b8009cafecaf5475b','542ac990949451c8d15bb25d62d9de0d95801a52d3bf4b4f0cbcdc1192b1bd5c','5cdb705752cff4ae5cfa93985280136fd61a39ecd677ad7d7f55d7e38a86e771');
INSERT INTO "events" VALUES(8,'01890000-0000-7000-8000-00000000000a',7,'evt_01a1de9f-2aeb-749b-a275-bac52ccbf392',1700000004000,'user','turn.completed',1,'{"durationMs":1,"status":"completed","turnId":"t-a2","type":"turn.completed","usage":{"cacheWriteInputTokens":0,"cachedInputTokens":0,"inputTokens":0,"outputTokens":0,"reasoningOutputTokens":0},"v":1}','a5cf1da2ed4299e6901527d93824159171865af70576ae1dbd0d01d518c7b6ea','5cdb705752cff4ae5cfa93985280136fd61a39ecd677ad7d7f55d7e38a86e771','0055cef96904cff5af350e05ca6e45cb623b53cc17c7db1fbbdae0d86e0f77f0');
INSERT INTO "events" VALUES(9,'01890000-0000-7000-8000-00000000000c',1,'evt_01a1de9f-2aec-7a40-8696-cf272a66d625',1700000005000,'user','thread.created',1,'{"origin":"exec","type":"thread.created","v":1,"workspace":"/w"}','0f476174b62598cc4a15f5af7f9ffec95549c7a4699f039fab23363fe23de00d','fd1e85f6c141250f8858bbb393731cb476c03016f5f0bf54a33e26dac6bb75b4','5b6f3e7adcbe0447acb3d91753221cdb2b8b50e8186ffc23955022bc3c6f25ef');
INSERT INTO "events" VALUES(10,'01890000-0000-7000-8000-00000000000c',2,'evt_01a1de9f-2aed-7971-90a8-9c84911e7feb',1700000005000,'user','turn.admitted',1,'{"holder":{"bootId":"b","pid":1,"pidNamespace":"p","startTicks":"1"},"input":[{"text":"do t-c1","type":"text"}],"settings":{"approvalPolicy":"never","model":"m","networkAccess":false,"provider":"scripted","sandboxMode":"read-only","writableRoots":[]},"turnId":"t-c1","type":"turn.admitted","v":1}','04eea23a682e7a515b70beccd3f17f560fe35ee183a0e21bd9cc7fa3013fd636','5b6f3e7adcbe0447acb3d91753221cdb2b8b50e8186ffc23955022bc3c6f25ef','5aa0a98aacd5b2b9333cddc03f5ba325fd9ae1e7692c2bd5eae8623625dc8e49');
CREATE TABLE threads (
  id TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  origin TEXT NOT NULL,
  title TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  turn_count INTEGER NOT NULL,
  last_position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "threads" VALUES('01890000-0000-7000-8000-00000000000a','/w','exec',NULL,1700000001000,1700000004000,2,8);
INSERT INTO "threads" VALUES('01890000-0000-7000-8000-00000000000b','/other','exec','second',1700000003000,1700000003000,0,5);
INSERT INTO "threads" VALUES('01890000-0000-7000-8000-00000000000c','/w','exec',NULL,1700000005000,1700000005000,1,10);
CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  thread_id TEXT NOT NULL,
  status TEXT NOT NULL,
  admitted_version INTEGER NOT NULL,
  admitted_position INTEGER NOT NULL,
  failure_code TEXT
) STRICT, WITHOUT ROWID;
INSERT INTO "turns" VALUES('t-a1','01890000-0000-7000-8000-00000000000a','failed',2,2,'provider.cut');
INSERT INTO "turns" VALUES('t-a2','01890000-0000-7000-8000-00000000000a','completed',5,6,NULL);
INSERT INTO "turns" VALUES('t-c1','01890000-0000-7000-8000-00000000000c','open',2,10,NULL);
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
CREATE INDEX threads_by_activity ON threads (last_position);
CREATE INDEX threads_by_workspace ON threads (workspace, last_position);
CREATE INDEX turns_by_thread ON turns (thread_id, admitted_version);
CREATE INDEX turns_open ON turns (admitted_position) WHERE status = 'open';
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',10);
COMMIT;

/** What goes wrong between a journal and its server, on a server of these tests' own that they stop, fill and lock. */
import { once } from "node:events";
import { connect as connectTo, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPostgres, type PostgresServer } from "./server.ts";
import type { Journal } from "../packages/journal/src/journal.ts";
import { startAppender } from "../packages/journal/src/suite/journal.appender.ts";
import { created, said } from "../packages/journal/src/suite/journal.samples.ts";
import { collect, ENDLESS } from "../packages/journal/src/suite/journal.suite.ts";
import { readAddress } from "../packages/journal/src/postgres/address.ts";
import { connect } from "../packages/journal/src/postgres/driver.ts";
import { lockOf } from "../packages/journal/src/postgres/lock.ts";
import { channelOf } from "../packages/journal/src/postgres/listener.ts";
import { newStore, type PostgresStore } from "../packages/journal/src/postgres/postgres.backend.ts";

const author = "system";
const SHORT_MS = 400;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", max_connections: 40 } });
});
afterAll(() => server[Symbol.asyncDispose]());

/** A way to the server that can swallow what the server says, or cut everything. */
async function openWay(): Promise<
  AsyncDisposable & { readonly url: string; readonly connections: Socket[]; isSilent: (said: string) => boolean }
> {
  const sockets: Socket[] = [];
  const way = { isSilent: (_said: string): boolean => false };
  const listening = createServer((client) => {
    const upstream = connectTo(server.port, "127.0.0.1");
    sockets.push(client, upstream);
    let isCut = false;
    client.on("data", (bytes) => {
      // Once cut, the server still gets what was sent before and answers nobody.
      if (!isCut && way.isSilent(bytes.toString("latin1"))) isCut = true;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (isCut) client.destroy();
      else client.write(bytes);
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => undefined);
      one.on("close", () => other.destroy());
    }
  }).listen(0, "127.0.0.1");
  await once(listening, "listening");
  const { port } = listening.address() as AddressInfo;
  return Object.assign(way, {
    url: `postgres://heddle@127.0.0.1:${port}/postgres`,
    connections: sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      listening.close();
      await once(listening, "close");
    },
  });
}

async function idsIn(store: PostgresStore): Promise<ReadonlySet<string>> {
  await using journal = await store.open();
  return new Set((await journal.read({ after: 0 })).map(({ id }) => id));
}

describe("an outcome that is not known", () => {
  test("S4: an append whose commit was stored and not answered is found by the id of its event, and is there once", async () => {
    await using way = await openWay();
    await using store = await newStore(way.url);
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    let cuts = 0;
    way.isSilent = (sent) => sent.includes("COMMIT") && (cuts += 1) === 1;
    const { events } = await journal.append({ stream: "a", author, events: [said("x")] });
    expect(cuts).toBeGreaterThanOrEqual(1);
    expect(await journal.read({ stream: "a", after: 1 })).toEqual(events);
    expect(await journal.append({ stream: "a", author, events: [said("y")] })).toMatchObject({
      events: [{ version: 3, position: 3 }],
    });
    expect(await journal.verify()).toMatchObject({ events: 3, damage: [] });
  });

  test("S4: one that was cut off before its commit is stored by the next try, once", async () => {
    await using way = await openWay();
    await using store = await newStore(way.url);
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    for (const socket of way.connections) socket.destroy();
    await journal.append({ stream: "a", author, events: [said("x")] });
    expect((await journal.read({ stream: "a", after: 0 })).map(({ version }) => version)).toEqual([1, 2]);
  });

  test("S4: where the server stays away, the outcome is told as not known, and never as refused", async () => {
    await using way = await openWay();
    await using store = await newStore(way.url);
    await using journal = await store.open({ patienceMs: SHORT_MS });
    await journal.append({ stream: "a", author, events: [created] });
    let isAway = false;
    way.isSilent = (sent) => {
      isAway ||= sent.includes("COMMIT");
      return isAway;
    };
    await expect(journal.append({ stream: "a", author, events: [said("x")] })).rejects.toMatchObject({
      code: "store.unknown",
    });
    way.isSilent = () => false;
    isAway = false;
    expect((await journal.read({ stream: "a", after: 0 })).length).toBeGreaterThanOrEqual(1);
    expect(await journal.verify()).toMatchObject({ damage: [] });
  });
});

describe("other writers", () => {
  test("S8: a writer that is cut off between lock and commit delays others by no more than 3.5 seconds", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    const address = readAddress(store.url);
    const stopped = await connect({
      address,
      purpose: "append",
      settings: { idle_in_transaction_session_timeout: 3_000 },
    });
    await stopped.exec("BEGIN");
    await stopped.exec(`SELECT pg_advisory_xact_lock(${lockOf(address)})`);
    const begun = performance.now();
    await journal.append({ stream: "a", author, events: [said("x")] });
    const waitedMs = performance.now() - begun;
    expect(waitedMs).toBeGreaterThan(1_000);
    expect(waitedMs).toBeLessThan(3_500);
    await stopped.gone;
  });

  test("S2: 16 writers of several processes leave no gap, no double and nothing out of order", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    const [writers, each] = [4, 15];
    const seen = collect(journal.tail({ after: 0, signal: ENDLESS }), writers * each + 12 * each);
    await using stack = new AsyncDisposableStack();
    const appenders = Array.from({ length: writers }, (_, index) =>
      stack.use(startAppender({ store, stream: `p${index}`, count: each })),
    );
    await using other = await store.open();
    const here = Array.from({ length: 12 }, async (_, index) => {
      for (let count = 0; count < each; count += 1)
        await (index % 2 === 0 ? journal : other).append({
          stream: `h${index % 3}`,
          author,
          events: [said(`${count}`)],
        });
    });
    await Promise.all([...here, ...appenders.map((appender) => appender.ended())]);
    const events = await seen;
    expect(events.map(({ position }) => position)).toEqual(Array.from({ length: 16 * each }, (_, index) => index + 1));
    expect(new Set(events.map(({ id }) => id)).size).toBe(16 * each);
    expect(await journal.verify()).toMatchObject({ events: 16 * each, damage: [] });
  });
});

describe("announcements", () => {
  test("a reader catches up when an announcement is lost, and when its connection is", async () => {
    await using store = await newStore(server.url);
    await using reader = await store.open();
    await using writer = await store.open();
    const events = reader.tail({ after: 0, signal: ENDLESS })[Symbol.asyncIterator]();
    const first = events.next();
    await writer.append({ stream: "a", author, events: [created] });
    await first;
    // Nobody is told any more: the channel is left, by the server's own hand.
    const end = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name IN ('heddle listen', 'heddle notify')`;
    for (const text of ["1", "2", "3"]) {
      const next = events.next();
      await store.sql(end);
      await writer.append({ stream: "a", author, events: [said(text)] });
      expect(await next).toMatchObject({ value: { body: { item: { text } } } });
    }
    expect(channelOf(readAddress(store.url))).toBe(`heddle_${store.schema}`);
  });
});

describe("a server that goes away", () => {
  test("S4: what was acknowledged is there after the server was stopped at once under load, again and again", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    const acknowledged: string[] = [];
    let isOver = false;
    const load = Array.from({ length: 4 }, async (_, index) => {
      while (!isOver) {
        const { events } = await journal.append({ stream: `s${index}`, author, events: [said("x")] });
        acknowledged.push(...events.map(({ id }) => id));
      }
    });
    for (let round = 1; round <= 3; round += 1) {
      const before = acknowledged.length;
      while (acknowledged.length < before + 20) await delay(5);
      await server.stop("immediate");
      await delay(100);
      await server.start();
    }
    isOver = true;
    await Promise.all(load);
    const stored = await idsIn(store);
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    // Nothing was refused, so nothing else may be there either: an append that was tried again is there once.
    expect(stored.size).toBe(acknowledged.length);
    await using after = await store.open();
    expect(await after.verify()).toMatchObject({ damage: [] });
  });

  test("S9: reads and appends wait for a server that restarts; who has no patience is told that it cannot be reached", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    await using hasty = await store.open({ patienceMs: SHORT_MS });
    await journal.append({ stream: "a", author, events: [created] });
    await hasty.append({ stream: "a", author, events: [said("x")] });
    await server.stop("fast");
    const waiting = [journal.append({ stream: "a", author, events: [said("y")] }), journal.read({ after: 0 })];
    await expect(hasty.append({ stream: "a", author, events: [said("z")] })).rejects.toMatchObject({
      code: "store.failed",
      message: expect.stringContaining("cannot reach"),
    });
    await server.start();
    await Promise.all(waiting);
    expect(await hasty.version("a")).toBe(3);
  });
});

describe("a server that cannot", () => {
  test("S22: out of connections is busy, and works again by itself", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open({ patienceMs: SHORT_MS });
    const taken = await takeConnections(store);
    await expect(journal.append({ stream: "a", author, events: [created] })).rejects.toMatchObject({
      code: "store.busy",
    });
    await Promise.all(taken.map((link) => link.close()));
    await expect.poll(() => tried(journal)).toBe("stored");
  });

  test("S22: a lock that nobody lets go of is busy", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    const address = readAddress(store.url);
    const holder = await connect({ address, purpose: "append" });
    await holder.exec("BEGIN");
    await holder.exec(`SELECT pg_advisory_xact_lock(${lockOf(address)})`);
    try {
      await using other = await store.open({ lockMs: 200 });
      await expect(other.append({ stream: "a", author, events: [said("x")] })).rejects.toMatchObject({
        code: "store.busy",
      });
    } finally {
      await holder.close();
    }
    await journal.append({ stream: "a", author, events: [said("y")] });
  });

  test("S22: a database that may only be read refuses appends by that name, and is read", async () => {
    await using store = await newStore(server.url);
    {
      await using journal = await store.open();
      await journal.append({ stream: "a", author, events: [created] });
    }
    await using journal = await store.open();
    expect(await journal.version("a")).toBe(1);
    await store.sql("ALTER ROLE heddle SET default_transaction_read_only = on");
    try {
      await using reading = await store.open();
      await expect(reading.append({ stream: "a", author, events: [said("x")] })).rejects.toMatchObject({
        code: "store.read-only",
      });
      expect(await reading.read({ after: 0 })).toHaveLength(1);
      expect(await reading.refusal()).toMatchObject({ code: "store.read-only" });
    } finally {
      const owner = await connect({
        address: readAddress(store.url),
        purpose: "migrate",
        settings: { default_transaction_read_only: "off" },
      });
      await owner.exec("ALTER ROLE heddle RESET default_transaction_read_only");
      await owner.close();
    }
  });

  test("S22: a full disk refuses the append, harms nothing, and is over when there is room", async () => {
    await using store = await newStore(server.url);
    await using journal = await store.open();
    await journal.append({ stream: "a", author, events: [created] });
    // As Postgres reports it: no file system of this machine has to be filled.
    await store.sql(`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
      CREATE TRIGGER full_disk BEFORE INSERT ON events EXECUTE FUNCTION full_disk()`);
    await expect(journal.append({ stream: "a", author, events: [said("x")] })).rejects.toMatchObject({
      code: "store.full",
    });
    expect(await journal.read({ after: 0 })).toHaveLength(1);
    await store.sql("DROP TRIGGER full_disk ON events");
    await journal.append({ stream: "a", author, events: [said("y")] });
    expect(await journal.verify()).toMatchObject({ events: 2, damage: [] });
  });

  test("a server that is not there, and a database that is not, are told by name and without the password", async () => {
    await using store = await newStore(server.url);
    const { port } = new URL(server.url);
    for (const url of [
      `postgres://heddle:secret-word@127.0.0.1:1/postgres`,
      `postgres://heddle:secret-word@127.0.0.1:${port}/none`,
    ]) {
      const opened = store.open({ url, patienceMs: 0 });
      await expect(opened).rejects.toMatchObject({ code: "store.failed" });
      await expect(opened).rejects.not.toMatchObject({ message: expect.stringContaining("secret-word") });
    }
  });
});

async function tried(journal: Journal): Promise<string> {
  return journal.append({ stream: "a", author, events: [created] }).then(
    () => "stored",
    (error: { readonly code: string }) => error.code,
  );
}

/** All that the server has for those who are not its owner, and those too. */
async function takeConnections(store: PostgresStore) {
  const taken = [];
  for (;;) {
    try {
      taken.push(await connect({ address: readAddress(store.url), purpose: "read" }));
    } catch {
      return taken;
    }
  }
}

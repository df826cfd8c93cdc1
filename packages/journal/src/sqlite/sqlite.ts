/** The journal on SQLite: `heddle.db` in the home, with its witness, checkpoints and key beside it. */
import { HeddleError, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import { createAppendGroup, type AppendGroup, type Member, type Outcome } from "../record/append-group.ts";
import { store, storeAll } from "./append.ts";
import { breathe, isLong, LONG_CHARS, LongEvents } from "../record/breathe.ts";
import { answer, changeCount, connect, foldWal, untilFree, type Connection, type Read } from "./driver.ts";
import { SQLITE } from "./dialect.ts";
import { sqlQueries, type Queries } from "../sql/queries/queries.ts";
import type { Ask } from "../sql/ask.ts";
import { leaseTime, sqlLeases, type LeaseTime } from "../sql/leases.ts";
import type { Checkpoint } from "../evidence/checkpoints.ts";
import { pathsOf, sizeOf, syncFile, type HomePaths } from "../home.ts";
import type {
  Append,
  Appended,
  Damage,
  ExportOptions,
  ExportPart,
  Journal,
  Notice,
  Purge,
  ReadOptions,
  TailOptions,
  VerifyReport,
  VerifyWatch,
} from "../journal.ts";
import { openStore, type OpenJournalOptions, type OpenStore } from "./open-store.ts";
import type { PreparedAppend } from "../record/prepare.ts";
import { loadFor, loadProjections } from "../projections/projections.ts";
import { rebuildAll } from "./project.ts";
import { createPreparing, type Preparing } from "../record/preparing.ts";
import type { Purger } from "./purger.ts";
import { lastPosition, lastVersion } from "./read.ts";
import { nextBatch, readPage } from "./read-recent.ts";
import { RecentEvents } from "../record/recent-events.ts";
import { createRedactor, type Redactor } from "../redaction/redact.ts";
import { withShapes } from "../record/rows.ts";
import { refuseOtherIncarnation } from "../record/incarnation.ts";
import type { ReplayReport } from "../replay/replay.ts";
import { toStoreError, unlessStopped } from "./store-errors.ts";
import { createWake, type Wake } from "./wake.ts";
import { openTestimony, type Testimony } from "../evidence/testimony.ts";
import { storedRows, rowsOf } from "./stored-rows.ts";
import { MAKES_ROOM, PLAIN, RENEWING, StoreWriter, type WriteKind } from "./writer.ts";

export async function openJournal(options: OpenJournalOptions): Promise<Journal> {
  const paths = pathsOf(options.home);
  return new SqliteJournal(await openStore(paths), paths, options);
}

class SqliteJournal implements Journal {
  /** A file outlives its readers' cursors, and is never given another past. */
  readonly incarnation = 1;
  readonly durability = "disk";
  readonly redactor: Redactor;
  readonly threads: Queries["threads"];
  readonly marks: Queries["marks"];
  readonly messages: Queries["messages"];
  readonly tasks: Queries["tasks"];
  readonly notifications: Queries["notifications"];
  readonly usage: Queries["usage"];
  readonly evidence: Queries["evidence"];
  readonly blobs: Queries["blobs"];
  readonly leases: Journal["leases"];
  readonly #paths: HomePaths;
  readonly #time: () => LeaseTime;
  readonly #wake: Wake;
  readonly #recent: RecentEvents;
  readonly #long = new LongEvents();
  readonly #testimony: Testimony;
  readonly #group: AppendGroup;
  readonly #preparing: Preparing;
  readonly #writer: StoreWriter;
  /** Loaded with the first purge: most processes never purge anything. */
  #purger: Promise<Purger> | undefined;
  readonly #notices = new Map<string, Notice>();
  /** `verify` found damage: the files stay as they are, as evidence. */
  #keepsFiles = false;
  #isClosed = false;
  /** Appends of this process keep the order of their calls. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(opened: OpenStore, paths: HomePaths, options: OpenJournalOptions) {
    this.redactor = options.redactor ?? createRedactor();
    this.redactor.learn(options.secrets ?? []);
    const read: Read = (work) => this.#read(work);
    const ask: Ask = (asking) => read((connection) => answer(connection, asking()));
    const queries = sqlQueries(ask, SQLITE, this);
    this.threads = queries.threads;
    this.marks = queries.marks;
    this.messages = queries.messages;
    this.tasks = queries.tasks;
    this.notifications = queries.notifications;
    this.usage = queries.usage;
    this.evidence = queries.evidence;
    this.blobs = queries.blobs;
    this.#paths = paths;
    this.#time = leaseTime(options);
    this.leases = sqlLeases(options, ask, (asking) =>
      this.#inTurn(() => this.#write(() => answer(this.#connection, asking()), RENEWING)),
    );
    this.#writer = new StoreWriter(opened, paths, () => this.#recent.clear());
    for (const notice of opened.notices) this.#notice(notice);
    const count = (): number => changeCount(this.#connection);
    this.#recent = new RecentEvents(count);
    this.#wake = createWake(count, () => this.#recent.clear());
    this.#testimony = openTestimony(paths, {
      sync: () => syncFile(`${paths.database}-wal`),
      notice: (notice) => this.#notice(notice),
    });
    this.#group = createAppendGroup((members) => {
      this.#queue = this.#queue.then(() => this.#appendAll(members));
    }, this);
    this.#preparing = createPreparing(this.redactor, (prepared) => this.#group.add(prepared));
  }

  get damage(): Damage | undefined {
    return this.#writer.damage;
  }

  get isWritable(): boolean {
    return this.#writer.isWritable;
  }

  get #connection(): Connection {
    return this.#writer.connection;
  }

  get notices(): readonly Notice[] {
    return [...this.#notices.values()];
  }

  async append(append: Append): Promise<Appended> {
    if (append.events.length === 0) return { events: [], isRepeat: false };
    try {
      return await this.#preparing.append(append);
    } catch (error) {
      throw toStoreError(error, this.#paths.database);
    }
  }

  refusal(): Promise<HeddleError | undefined> {
    return this.#inTurn(() => this.#writer.refusal());
  }

  async purge(asked: Purge): Promise<StoredEvent> {
    try {
      const before = this.#preparing.added(asked.stream);
      if (before !== undefined) await before;
      // In its turn from here on: appends that are called later come after the end.
      const deleted = await this.#inTurn(async () =>
        (await this.#openPurger()).endThread({ ...asked, redactor: this.redactor }),
      );
      this.#wake.now(deleted.stream);
      this.#testimony.committed([deleted], "full");
      await this.finishPurges();
      return deleted;
    } catch (error) {
      throw toStoreError(error, this.#paths.database);
    }
  }

  async finishPurges(): Promise<void> {
    if (this.isWritable && sizeOf(this.#paths.purging) >= 0) await (await this.#openPurger()).finish();
  }

  async settled(): Promise<void> {
    await (await this.#purger)?.settled();
  }

  async compact(): Promise<void> {
    const { rewrite } = await import("./purge.ts");
    await this.#inTurn(async () => {
      await this.#write(() => undefined, PLAIN);
      await untilFree(() => rewrite(this.#connection));
      await untilFree(() => foldWal(this.#connection));
    }).catch((error: unknown) => {
      throw toStoreError(error, this.#paths.database);
    });
  }

  read(options: ReadOptions): Promise<readonly StoredEvent[]> {
    return readPage(options, { reading: (work) => this.#read(work), recent: this.#recent, long: this.#long });
  }

  position(): Promise<number> {
    return this.#read(lastPosition);
  }

  version(stream: string): Promise<number> {
    return this.#read((connection) => lastVersion(connection, stream));
  }

  async *tail(options: TailOptions): AsyncIterable<StoredEvent> {
    const { stream, signal } = options;
    let after = options.after;
    refuseOtherIncarnation(this, options);
    // From here on the wake reports changes: asking before each batch would cost more than the batch.
    await this.#read(() => this.#recent.forgetWhenChanged());
    using follower = this.#wake.follow(stream);
    while (!signal.aborted && !this.#isClosed) {
      follower.mark();
      if (this.#long.isAhead({ stream, after })) await breathe();
      const { events, isCut } = await this.#read((connection) =>
        nextBatch(connection, this.#recent, { stream, after }),
      );
      this.#long.met(events);
      for (const event of events) {
        // There may be many followers.
        if (isLong(event.body)) await breathe();
        if (signal.aborted) return;
        after = stream === undefined ? event.position : event.version;
        yield event;
      }
      if (!isCut) await follower.wait(signal);
    }
  }

  async verify(stream?: string, watch: VerifyWatch = {}): Promise<VerifyReport> {
    this.#testimony.flush();
    const { verifyStore } = await import("../evidence/verify.ts");
    const { walkStore } = await import("./walk-store.ts");
    const { withKnown } = await import("../evidence/walk-all.ts");
    const walk = () => walkStore(this.#connection, this.#paths.database, { ...watch, stream });
    const report = await untilFree(() =>
      verifyStore(rowsOf(this.#connection), this.#paths, { stream, walk, signal: watch.signal }),
    ).catch(unlessStopped(this.#paths.database, watch.signal));
    this.#keepsFiles ||= report.damage.length > 0;
    if (stream !== undefined && report.damage.length === 0) this.#recent.proven(stream, 0);
    return withKnown(report, this.damage, stream);
  }

  async replay(stream?: string, watch: Pick<VerifyWatch, "onProgress" | "signal"> = {}): Promise<ReplayReport> {
    const { replayStore } = await import("./replay-store.ts");
    return await replayStore(this.#connection, { ...watch, stream }).catch(
      unlessStopped(this.#paths.database, watch.signal),
    );
  }

  async keepManifest(roots: readonly string[], signal: AbortSignal): Promise<string> {
    const { storeManifest, takeManifest } = await import("../manifests/manifest.ts");
    return await storeManifest(this.#paths.home, await takeManifest(roots, { signal }));
  }

  async prove(stream: string, after = 0): Promise<Damage | undefined> {
    if (await this.#read(() => this.#recent.isProven(stream, after))) return undefined;
    this.#testimony.flush();
    const { proveEnd } = await import("../evidence/prove.ts");
    const damage = await proveEnd(rowsOf(this.#connection), this.#paths, { stream, after });
    if (damage === undefined) this.#recent.proven(stream, after);
    else this.#keepsFiles = true;
    return this.damage ?? damage;
  }

  async checkpoints(stream: string): Promise<readonly Checkpoint[]> {
    this.#testimony.flush();
    const { checkpointsOf } = await import("../evidence/checkpoints.ts");
    return checkpointsOf(this.#paths.checkpoints, stream);
  }

  async *exportLines(parts: readonly ExportPart[], options: ExportOptions = {}): AsyncIterable<string> {
    this.#testimony.flush();
    const { exportLines } = await import("../evidence/export.ts");
    const rows = storedRows((work) => this.#read(work));
    yield* exportLines(rows, this.#paths, { ...options, parts });
  }

  rebuildProjections(): Promise<void> {
    return this.#inTurn(() => loadProjections().then(() => this.#write(() => rebuildAll(this.#connection), PLAIN)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leases.close();
    await (await this.#purger)?.close();
    await this.#preparing.added();
    this.#group.flush();
    await this.#queue;
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wake.close();
    this.#testimony.flush();
    this.#testimony.close();
    // An open reader keeps a closing writer from folding the WAL into a damaged database.
    const reader = this.#keepsFiles && this.isWritable ? await connect(this.#paths.database, "read-only") : undefined;
    reader?.get("SELECT count(*) FROM sqlite_schema");
    this.#connection.close();
    reader?.close();
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#group.flush();
    const result = this.#queue.then(work);
    this.#queue = result.catch(() => undefined);
    return result;
  }

  async #read<T>(work: (connection: Connection) => T): Promise<T> {
    this.#refuseWhenClosed();
    try {
      return await withShapes(() => untilFree(() => work(this.#connection)));
    } catch (error) {
      throw toStoreError(error, this.#paths.database);
    }
  }

  /** Never rejects: every member gets its own result. */
  async #appendAll(members: readonly Member[]): Promise<void> {
    if (members.some(({ prepared }) => prepared.chars > LONG_CHARS)) await breathe();
    await loadFor(members.flatMap(({ prepared }) => prepared.append.events));
    const outcomes = members.length > 1 ? await this.#storeTogether(members) : undefined;
    for (const [index, { prepared, resolve, reject }] of members.entries()) {
      try {
        const outcome = outcomes?.[index] ?? { appended: await this.#append(prepared) };
        if ("error" in outcome) reject(outcome.error);
        else resolve(outcome.appended);
      } catch (error) {
        reject(error);
      }
    }
  }

  /** undefined: not possible for all at once, and nothing was stored. */
  async #storeTogether(members: readonly Member[]): Promise<readonly Outcome[] | undefined> {
    const isFull = members.some(({ prepared }) => prepared.durability === "full");
    let outcomes: readonly Outcome[];
    try {
      failpoint("journal.append.before-begin");
      outcomes = await this.#write(
        () => {
          this.#testimony.rotateWhenLarge();
          return storeAll(this.#connection, members, this.#time);
        },
        { durability: isFull ? "full" : "relaxed", endsTurn: false },
      );
    } catch {
      return undefined;
    }
    return outcomes.map((outcome, index): Outcome => {
      const prepared = members[index]?.prepared;
      if (prepared === undefined || "error" in outcome) return outcome;
      try {
        this.#committed(outcome.appended, prepared);
        return outcome;
      } catch (error) {
        return { error };
      }
    });
  }

  async #append(prepared: PreparedAppend): Promise<Appended> {
    failpoint("journal.append.before-begin");
    const work = (): Appended => {
      this.#testimony.rotateWhenLarge();
      return store(this.#connection, prepared, this.#time());
    };
    const appended = await this.#write(work, prepared);
    this.#committed(appended, prepared);
    return appended;
  }

  #committed(appended: Appended, prepared: PreparedAppend): void {
    if (appended.isRepeat) return;
    this.#recent.added(appended.events, prepared.chars);
    this.#long.met(appended.events);
    this.#wake.now(prepared.append.stream);
    failpoint("journal.append.after-commit");
    this.#testimony.committed(appended.events, prepared.durability);
    this.#writer.keepRoom();
  }

  #openPurger(): Promise<Purger> {
    this.#purger ??= Promise.all([import("./purger.ts"), loadProjections()]).then(([{ createPurger }]) =>
      createPurger({
        paths: this.#paths,
        connection: () => this.#connection,
        time: this.#time,
        inTurn: (work) => this.#inTurn(async () => work()),
        write: (work) => this.#write(work, MAKES_ROOM),
        forgotten: (stream) => this.#recent.forget(stream),
        notice: (notice) => this.#notice(notice),
      }),
    );
    return this.#purger;
  }

  async #write<T>(work: () => T, kind: WriteKind): Promise<T> {
    this.#refuseWhenClosed();
    return this.#writer.write(work, kind);
  }

  #notice(notice: Notice): void {
    this.#notices.set(notice.kind, notice);
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new HeddleError("store.failed", "the journal is closed");
  }
}

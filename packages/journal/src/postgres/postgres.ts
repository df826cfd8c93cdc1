/** The journal on Postgres: one schema of a database; beside it, in the home, the witness, checkpoints and key of this machine. */
import { HeddleError, type StoredEvent } from "@heddle/protocol";
import { failpoint } from "@heddle/protocol/failpoints";
import type { Checkpoint } from "../evidence/checkpoints.ts";
import { openTestimony, type Testimony } from "../evidence/testimony.ts";
import type { HomePaths } from "../home.ts";
import type {
  Append,
  Appended,
  Damage,
  Durability,
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
import type { Member } from "../record/append-group.ts";
import { createBatches, type Batches } from "../record/batches.ts";
import { breathe, isLong, LONG_CHARS } from "../record/breathe.ts";
import { createPreparing, type Preparing } from "../record/preparing.ts";
import { expired, refuseOtherIncarnation } from "../record/incarnation.ts";
import type { PostgresOptions } from "./options.ts";
import { withShapes } from "../record/rows.ts";
import { createRedactor, type Redactor } from "../redaction/redact.ts";
import type { ReplayReport } from "../replay/replay.ts";
import { sqlQueries, type Queries } from "../sql/queries/queries.ts";
import { all, type Ask, type Asking } from "../sql/ask.ts";
import { leaseTime, sqlLeases } from "../sql/leases.ts";
import { checkOnOpen } from "../sql/open-check.ts";
import { lastPosition, lastVersion, storedRows } from "../sql/stored-rows.ts";
import type { StoredRows } from "../evidence/stored-rows.ts";
import { loadFor, loadProjections } from "../projections/projections.ts";
import type { PostgresAddress } from "./address.ts";
import { firstIdOf, storeGroup, type Decided, type GroupOptions } from "./append.ts";
import { createSharedCheckpoints, type SharedCheckpoints } from "./checkpoints.ts";
import { POSTGRES } from "./dialect.ts";
import { createListener, type Listener } from "./listener.ts";
import { createNotifier, type Notifier } from "./notifier.ts";
import { endThread, finishPurges, type PurgeOptions } from "./purge.ts";
import { BATCH_EVENTS, readBatch, readRows, readVersions } from "./read.ts";
import { createRecentStreams, type RecentStreams } from "./recent-streams.ts";
import { createReaders, type Readers } from "./readers.ts";
import { newer, NEWEST, type JournalState } from "./schema.ts";
import { asDamage, isOfContent, requireWritable, toStoreError } from "./store-errors.ts";
import { createWriter, type Writer } from "./writer.ts";

/** A restart of the server; then a caller is told. */
const PATIENCE_MS = 30_000;

export interface Opened {
  readonly address: PostgresAddress;
  readonly lock: string;
  readonly state: JournalState;
  readonly paths: HomePaths;
}

export class PostgresJournal implements Journal {
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
  readonly #opened: Opened;
  readonly #readers: Readers;
  readonly #writer: Writer;
  readonly #rows: StoredRows;
  readonly #recent: RecentStreams;
  readonly #wake: Listener;
  readonly #notifier: Notifier;
  readonly #testimony: Testimony;
  readonly #shared: SharedCheckpoints;
  readonly #batches: Batches;
  readonly #preparing: Preparing;
  readonly #group: GroupOptions;
  readonly #notices = new Map<string, Notice>();
  readonly #ask: Ask = async (asking) => {
    this.#refuseWhenClosed();
    try {
      return await withShapes(() => this.#readers.ask(asking));
    } catch (error) {
      throw toStoreError(error, this.#opened.address.name);
    }
  };
  #damage: Damage | undefined;
  #isClosed = false;

  constructor(options: PostgresOptions, opened: Opened) {
    const { address, lock, state, paths } = opened;
    const { patienceMs = PATIENCE_MS, answerMs, lockMs } = options;
    this.#opened = opened;
    this.redactor = options.redactor ?? createRedactor();
    this.redactor.learn([...(options.secrets ?? []), address.password ?? []].flat());
    this.#readers = createReaders(address, patienceMs);
    this.#writer = createWriter({ address, lock, patienceMs, answerMs, lockMs });
    const ask = this.#ask;
    const notice = (one: Notice): void => void this.#notices.set(one.kind, one);
    // Also those that are written while it closes.
    this.#shared = createSharedCheckpoints((asking) => this.#readers.ask(asking), { keys: paths.keys, notice });
    this.#rows = storedRows(ask, {
      pageOf: (range) => ask(() => readRows(range)),
      damageOf: asDamage,
      shared: (stream) => this.#shared.read(stream),
    });
    const queries = sqlQueries(ask, POSTGRES, this);
    this.threads = queries.threads;
    this.marks = queries.marks;
    this.messages = queries.messages;
    this.tasks = queries.tasks;
    this.notifications = queries.notifications;
    this.usage = queries.usage;
    this.evidence = queries.evidence;
    this.blobs = queries.blobs;
    this.leases = sqlLeases(options, ask, ask);
    this.#recent = createRecentStreams(ask);
    this.#wake = createListener({
      address,
      ask,
      incarnation: state.incarnation,
      onLoss: () => void this.check().catch(() => undefined),
    });
    this.#notifier = createNotifier(address);
    // What is committed is durable already.
    const signed = (checkpoint: Checkpoint): void => this.#shared.add(checkpoint);
    this.#testimony = openTestimony(paths, { sync: () => undefined, notice, signed });
    this.#damage = state.damage === undefined ? undefined : (JSON.parse(state.damage) as Damage);
    this.#group = { time: leaseTime(options), allow: (now) => this.#allow(now), tickets: options.tickets };
    this.#batches = createBatches((members) => this.#commit(members), this);
    this.#preparing = createPreparing(this.redactor, (prepared) => this.#batches.add(prepared));
  }

  get damage(): Damage | undefined {
    return this.#damage;
  }

  get isWritable(): boolean {
    return this.#damage === undefined;
  }

  get notices(): readonly Notice[] {
    return [...this.#notices.values()];
  }

  get incarnation(): number {
    return this.#opened.state.incarnation;
  }

  get durability(): Durability {
    return this.#opened.state.durability;
  }

  /** What the witness of this machine knows, and the newest events. */
  async check(): Promise<void> {
    const { witness } = this.#opened.paths;
    const found = await checkOnOpen({ ask: this.#ask, rows: this.#rows, witness, isUnreadable: () => false });
    for (const notice of found.notices) this.#notices.set(notice.kind, notice);
    const { damage } = found;
    if (damage === undefined || this.#damage !== undefined) return;
    this.#damage = damage;
    // The others cannot see what this machine has been told.
    const sql = "UPDATE journal_state SET damage = ? WHERE damage IS NULL";
    const tell = (): Asking<unknown> => all(sql, JSON.stringify(damage));
    if (damage.by === "witness") await this.#writer.write({ work: (one) => one.ask(tell()), mark: () => undefined });
  }

  async append(append: Append): Promise<Appended> {
    this.#refuseWhenClosed();
    if (append.events.length === 0) return { events: [], isRepeat: false };
    return await this.#preparing.append(append);
  }

  async refusal(): Promise<HeddleError | undefined> {
    try {
      await this.#inTurn(() =>
        this.#writer.write({
          work: async (transaction) => {
            await storeGroup(transaction, [], this.#group);
            await transaction.ask(requireWritable(this.#opened.address.name));
          },
          mark: () => undefined,
        }),
      );
      return undefined;
    } catch (error) {
      return toStoreError(error, this.#opened.address.name);
    }
  }

  async purge(asked: Purge): Promise<StoredEvent> {
    const before = this.#preparing.added(asked.stream);
    if (before !== undefined) await before;
    await loadProjections();
    const deleted = await this.#inTurn(() => endThread(this.#purging(), asked));
    this.#committed([deleted]);
    await this.finishPurges();
    return deleted;
  }

  async finishPurges(): Promise<void> {
    if (this.isWritable) await finishPurges(this.#purging());
  }

  settled(): Promise<void> {
    return Promise.resolve();
  }

  async compact(): Promise<void> {
    await this.#inTurn(() => this.#writer.exec("VACUUM (ANALYZE) events"));
  }

  read(options: ReadOptions): Promise<readonly StoredEvent[]> {
    return this.#recent.read(options);
  }

  position(): Promise<number> {
    return lastPosition(this.#ask);
  }

  version(stream: string): Promise<number> {
    return lastVersion(this.#ask, stream);
  }

  async *tail(options: TailOptions): AsyncIterable<StoredEvent> {
    const { stream, signal } = options;
    let after = options.after;
    refuseOtherIncarnation(this, options);
    using follower = this.#wake.follow(stream);
    while (!signal.aborted && !this.#isClosed) {
      follower.mark();
      if (this.#wake.isReplaced) throw expired();
      const asked = { ...(stream === undefined ? {} : { stream }), after, limit: BATCH_EVENTS };
      const { events, isCut } = await this.#ask(() => readBatch(asked));
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
    await this.#shared.idle();
    const { verifyStore } = await import("../evidence/verify.ts");
    const { walkAll, withKnown } = await import("../evidence/walk-all.ts");
    const of = stream === undefined ? await this.position() : undefined;
    const { signal } = watch;
    const walk = () => walkAll(this.#rows, { stream, of, ...watch });
    return withKnown(await verifyStore(this.#rows, this.#opened.paths, { stream, walk, signal }), this.damage, stream);
  }

  async replay(stream?: string, watch: Pick<VerifyWatch, "onProgress" | "signal"> = {}): Promise<ReplayReport> {
    const { replayStore } = await import("../sql/replay.ts");
    const { replayPage } = await import("./read.ts");
    const page = (of: Parameters<typeof replayPage>[0]) => this.#ask(() => replayPage(of));
    return await replayStore({ ask: this.#ask, page }, { ...watch, stream });
  }

  async keepManifest(roots: readonly string[], signal: AbortSignal): Promise<string> {
    const { storeManifest, takeManifest } = await import("../manifests/manifest.ts");
    return await storeManifest(this.#opened.paths.home, await takeManifest(roots, { signal }));
  }

  async prove(stream: string, after = 0): Promise<Damage | undefined> {
    this.#testimony.flush();
    const { proveEnd } = await import("../evidence/prove.ts");
    return this.damage ?? (await proveEnd(this.#rows, this.#opened.paths, { stream, after }));
  }

  async checkpoints(stream: string): Promise<readonly Checkpoint[]> {
    this.#testimony.flush();
    await this.#shared.idle();
    return await this.#shared.newest(stream);
  }

  async *exportLines(parts: readonly ExportPart[], options: ExportOptions = {}): AsyncIterable<string> {
    this.#testimony.flush();
    const { exportLines } = await import("../evidence/export.ts");
    yield* exportLines(this.#rows, this.#opened.paths, { ...options, parts });
  }

  async rebuildProjections(): Promise<void> {
    const { rebuildAll } = await import("./rebuild.ts");
    await this.#inTurn(() => this.#writer.write({ work: rebuildAll, mark: () => undefined }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leases.close();
    await this.#preparing.added();
    await this.#batches.idle();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wake.close();
    this.#testimony.flush();
    this.#testimony.close();
    await this.#shared.idle();
    await Promise.all([this.#notifier.close(), this.#readers.close(), this.#writer.close()]);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.#refuseWhenClosed();
    return this.#batches.inTurn(work);
  }

  /** Under the lock, for every write. */
  #allow({ damage, incarnation, minWriter }: JournalState): void {
    const { address, state } = this.#opened;
    if (damage !== undefined) this.#damage ??= JSON.parse(damage) as Damage;
    if (this.#damage !== undefined)
      throw new HeddleError("store.damaged", `nothing can be added: ${this.#damage.message}`);
    if (minWriter > NEWEST) throw newer(address, minWriter);
    if (incarnation !== state.incarnation) {
      const message = `${address.name} was restored or taken over since it was opened; start this process again`;
      throw new HeddleError("store.failed", message);
    }
    this.#testimony.rotateWhenLarge();
  }

  /** Never rejects: every member gets its own result. */
  async #commit(members: readonly Member[]): Promise<void> {
    if (members.some(({ prepared }) => prepared.chars > LONG_CHARS)) await breathe();
    try {
      await loadFor(members.flatMap(({ prepared }) => prepared.append.events));
      failpoint("journal.append.before-begin");
      const prepared = members.map((member) => member.prepared);
      const decided = await this.#writer.write({
        work: (transaction) => storeGroup(transaction, prepared, this.#group),
        mark: firstIdOf,
      });
      this.#committed(decided.flatMap((one) => (one.kind === "stored" ? one.events : [])));
      for (const [index, member] of members.entries()) await this.#settle(member, decided[index]);
    } catch (error) {
      const refusal = toStoreError(error, this.#opened.address.name);
      // One of them is to blame: the others are stored without it.
      if (members.length > 1 && isOfContent(refusal)) for (const member of members) await this.#commit([member]);
      else for (const { reject } of members) reject(refusal);
    }
  }

  async #settle({ prepared, resolve, reject }: Member, decided: Decided | undefined): Promise<void> {
    try {
      if (decided === undefined) throw new HeddleError("internal", "an append was not decided");
      if (decided.kind === "refused") return reject(decided.error);
      if (decided.kind === "stored") {
        this.#recent.added(decided.events, prepared.chars);
        this.#testimony.committed(decided.events, prepared.durability);
        return resolve({ events: decided.events, isRepeat: false });
      }
      const { stream, first, last } = decided.of;
      resolve({ events: await this.#ask(() => readVersions(stream, first, last)), isRepeat: true });
    } catch (error) {
      reject(error);
    }
  }

  #committed(events: readonly StoredEvent[]): void {
    const [first, last] = [events.at(0), events.at(-1)];
    if (first === undefined || last === undefined) return;
    failpoint("journal.append.after-commit");
    this.#wake.committed(first.position, last.position);
    for (const stream of new Set(events.map((event) => event.stream))) this.#wake.now(stream);
    this.#notifier.announce(last.position);
  }

  #purging(): PurgeOptions {
    return {
      home: this.#opened.paths.home,
      writer: this.#writer,
      ask: this.#ask,
      group: this.#group,
      redactor: this.redactor,
      inTurn: (work) => this.#inTurn(work),
      notice: (notice) => this.#notices.set(notice.kind, notice),
    };
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new HeddleError("store.failed", "the journal is closed");
  }
}

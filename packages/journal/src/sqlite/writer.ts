/**
 * The one way to write to the store: a transaction, with all that may go wrong on the way given a name, and what that means
 * for later ones. A full disk is met in three steps: the WAL is folded into the database, where a page is needed once and
 * not once for each commit; for the end of a turn the reserve is given up; else it is refused, and works again with room.
 *
 *   open ─▶ failed (a sync went wrong) ─▶ open, by the next write, with a new connection
 */
import { clockMs, HeddleError, isHeddleError } from "@heddle/protocol";
import { connect, foldWal, untilFree, type Connection } from "./driver.ts";
import { sizeOf, type HomePaths } from "../home.ts";
import type { Damage } from "../journal.ts";
import { schemaVersion } from "./migrate.ts";
import { openStore, type OpenStore } from "./open-store.ts";
import { openReserve } from "./reserve.ts";
import {
  asDamage,
  freeBytes,
  FULL_BELOW_BYTES,
  fullError,
  readOnlyError,
  toStoreError,
  writeFaultOf,
} from "./store-errors.ts";

/** A failed write is not probed more often than this. */
const LOOK_AGAIN_MS = 250;
const FOLD_AGAIN_MS = 1000;
/** With more free space than this the WAL, which SQLite folds at 4 MB, does no harm. */
const SHORT_BELOW_BYTES = 16 * 1024 * 1024;
/** A smaller one is not worth the syncs. */
const FOLD_ABOVE_BYTES = 128 * 1024;

export interface WriteKind {
  readonly durability: "full" | "relaxed";
  /** A full disk must not keep a turn open: its end may use the reserve. */
  readonly endsTurn: boolean;
}

/** It makes room, so it may use the reserve. */
export const MAKES_ROOM: WriteKind = { durability: "full", endsTurn: true };
/** Losing one to a power cut is losing its process. */
export const RENEWING: WriteKind = { durability: "relaxed", endsTurn: false };
export const PLAIN: WriteKind = { durability: "full", endsTurn: false };

export class StoreWriter {
  readonly #paths: HomePaths;
  readonly #onReopen: () => void;
  readonly #reserve: ReturnType<typeof openReserve>;
  #connection: Connection;
  #damage: Damage | undefined;
  #refusal: HeddleError;
  #isFailed = false;
  /** The last failed write; none has succeeded since. */
  #fault: { readonly error: HeddleError; readonly lookedAt: number } | undefined;
  #foldNotBefore = 0;

  /** `onReopen`: caches of the old connection are invalid. */
  constructor(opened: OpenStore, paths: HomePaths, onReopen: () => void) {
    this.#connection = opened.connection;
    this.#damage = opened.damage;
    this.#refusal = opened.refusal ?? readOnlyError(paths.database);
    this.#paths = paths;
    this.#onReopen = onReopen;
    this.#reserve = openReserve(paths.reserve);
  }

  get connection(): Connection {
    return this.#connection;
  }

  get damage(): Damage | undefined {
    return this.#damage;
  }

  get isWritable(): boolean {
    return !this.#connection.isReadOnly && this.#damage === undefined;
  }

  async write<T>(work: () => T, { durability, endsTurn: isLast }: WriteKind): Promise<T> {
    if (this.#damage !== undefined) {
      throw new HeddleError("store.damaged", `nothing can be added: ${this.#damage.message}`);
    }
    try {
      await this.#reopenWhenNeeded();
      if (!isLast) this.#keepReserve();
      const done = await this.#transact(() => this.#connection.transaction(durability, work), isLast);
      this.#fault = undefined;
      return done;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** After a commit. On a nearly full disk the WAL is folded before it takes the room that folding needs. */
  keepRoom(): void {
    this.#reserve.refill();
    const { database } = this.#paths;
    const free = freeBytes(database);
    if (free < SHORT_BELOW_BYTES && sizeOf(`${database}-wal`) > Math.max(FOLD_ABOVE_BYTES, free / 4)) this.#fold();
  }

  /** Why a write would be refused now. Probed only after one was. */
  async refusal(): Promise<HeddleError | undefined> {
    if (this.#damage !== undefined) return new HeddleError("store.damaged", this.#damage.message);
    const fault = this.#fault;
    if (fault !== undefined && clockMs() - fault.lookedAt < LOOK_AGAIN_MS) return fault.error;
    if (fault === undefined && !this.#connection.isReadOnly) {
      const isFull = freeBytes(this.#paths.database) < FULL_BELOW_BYTES || !this.#reserve.isKept();
      return isFull ? fullError(this.#paths.database) : undefined;
    }
    try {
      await this.write(() => touch(this.#connection), { durability: "full", endsTurn: false });
      this.keepRoom();
      return undefined;
    } catch (error) {
      return toStoreError(error, this.#paths.database);
    }
  }

  async #transact<T>(transaction: () => T, isLast: boolean): Promise<T> {
    const helps = [() => this.#fold(), () => isLast && this.#reserve.release()];
    for (;;) {
      try {
        return await untilFree(transaction);
      } catch (error) {
        if (writeFaultOf(error, this.#paths.database) !== "full") throw error;
        let hasHelped = false;
        while (!hasHelped && helps.length > 0) hasHelped = helps.shift()?.() ?? false;
        if (!hasHelped) throw error;
      }
    }
  }

  /** Folding needs room itself, and a reader may block it: then nothing changes. */
  #fold(): boolean {
    const { database } = this.#paths;
    const isShort = freeBytes(database) < SHORT_BELOW_BYTES && sizeOf(`${database}-wal`) > 0;
    if (!isShort || clockMs() < this.#foldNotBefore) return false;
    try {
      foldWal(this.#connection);
      return true;
    } catch {
      this.#foldNotBefore = clockMs() + FOLD_AGAIN_MS;
      return false;
    }
  }

  #keepReserve(): void {
    if (this.#reserve.isKept()) return;
    if (!this.#fold() || !this.#reserve.isKept()) throw fullError(this.#paths.database);
  }

  /** What a failure means for later calls, and the error to report. */
  #failed(error: unknown): HeddleError {
    // The refusal of an append says nothing about the store.
    if (isHeddleError(error) && error.code !== "store.full" && error.code !== "store.read-only") return error;
    const storeError = toStoreError(error, this.#paths.database);
    switch (writeFaultOf(error, this.#paths.database)) {
      case "io":
        this.#isFailed = true;
        break;
      case "damaged":
        this.#damage = asDamage(error);
        break;
      case "busy":
      case "full":
      case "read-only":
      case "other":
        break;
    }
    this.#fault = { error: storeError, lookedAt: clockMs() };
    return storeError;
  }

  /**
   * After a failed sync the kernel may call pages clean that never reached the disk, so syncing again proves nothing. A
   * new connection writes all of the WAL into the database, as new pages with their own sync. A store that was
   * read-only because of a full disk can be written when it no longer is.
   */
  async #reopenWhenNeeded(): Promise<void> {
    if (this.#isFailed) {
      this.#connection.close();
      this.#onReopen();
      this.#connection = await connect(this.#paths.database, "read-write");
      await untilFree(() => foldWal(this.#connection));
      this.#isFailed = false;
    }
    if (!this.#connection.isReadOnly) return;
    if (this.#refusal.code !== "store.full" || freeBytes(this.#paths.database) < FULL_BELOW_BYTES) throw this.#refusal;
    const { connection, damage, refusal } = await openStore(this.#paths);
    this.#connection.close();
    this.#onReopen();
    this.#connection = connection;
    this.#damage = damage;
    if (refusal === undefined) return;
    this.#refusal = refusal;
    throw refusal;
  }
}

function touch(connection: Connection): void {
  connection.exec(`PRAGMA user_version = ${schemaVersion(connection)}`);
}

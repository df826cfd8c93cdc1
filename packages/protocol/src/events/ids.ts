/**
 * Ids. Threads and turns are plain UUIDv7, because the protocols replaced here expect that shape;
 * everything else carries a prefix that says what it is.
 */

const ID_BYTES = 10;
/** Enough for a hundred ids: random bytes for one id take longer than the id. */
const random = new Uint8Array(100 * ID_BYTES);
let used = random.length;

/** In Node without web crypto, which costs a millisecond to load; browsers have nothing else. */
const fill: (bytes: Uint8Array<ArrayBuffer>) => unknown =
  typeof process === "object" && typeof process.getBuiltinModule === "function"
    ? (bytes) => process.getBuiltinModule("node:crypto").randomFillSync(bytes)
    : (bytes) => crypto.getRandomValues(bytes);

/** UUIDv7: 48 bits of milliseconds, then random bits. Sorts by time of creation. */
export function uuidv7(now: number = Date.now()): string {
  const time = Math.trunc(now).toString(16).padStart(12, "0").slice(-12);
  const bits = Array.from(nextRandom(), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const version = `7${bits.slice(0, 3)}`;
  const variant = ((Number.parseInt(bits.slice(3, 4), 16) & 0x3) | 0x8).toString(16) + bits.slice(4, 7);
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${bits.slice(7, 19)}`;
}

/** Never the same bytes twice. */
function nextRandom(): Uint8Array {
  if (used === random.length) {
    fill(random);
    used = 0;
  }
  used += ID_BYTES;
  return random.subarray(used - ID_BYTES, used);
}

export const newThreadId = (): string => uuidv7();
export const newTurnId = (): string => uuidv7();
export const newEventId = (): string => `evt_${uuidv7()}`;
export const newItemId = (): string => `item_${uuidv7()}`;
/** Of the first message of a turn, so that its caller can name it. */
export const inputItemId = (turnId: string): string => `item_${turnId}`;
export const newApprovalId = (): string => `apr_${uuidv7()}`;
export const newTaskId = (): string => `task_${uuidv7()}`;
export const newCallId = (): string => `call_${uuidv7()}`;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
/** How the streams of notes beside any thread begin. */
export const NOTE_STREAM = "note_";

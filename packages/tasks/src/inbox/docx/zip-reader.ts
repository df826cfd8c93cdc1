/**
 * Reads one entry of a zip archive by its exact name. Sizes are bounded before and while inflating, and the result must
 * have the declared length and checksum. What word processors never write (zip64, encryption, several disks) is refused.
 */
import { crc32, inflateRawSync } from "node:zlib";
import { HeddleError } from "@heddle/protocol";

const END = 0x06054b50;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;
const ENTRY = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED_FLAG = 1;
/** The value of a field when the real number is in a zip64 record. */
const ELSEWHERE_16 = 0xffff;
const ELSEWHERE_32 = 0xffffffff;
/** A document has a dozen, and one for each picture. */
const MAX_ENTRIES = 2_000;

interface Entry {
  readonly flags: number;
  readonly method: number;
  readonly sum: number;
  readonly packedBytes: number;
  readonly sizeBytes: number;
  readonly localAt: number;
}

/** undefined: there is no entry of that name. Throws `task.invalid`. */
export function readZipEntry(
  archive: Buffer,
  { name, maxBytes }: { readonly name: string; readonly maxBytes: number },
): Buffer | undefined {
  const directory = directoryOf(archive);
  const entry = findEntry(archive, directory, name);
  if (entry === undefined) return undefined;
  if ((entry.flags & ENCRYPTED_FLAG) !== 0) throw refused("it is encrypted", "save it without a password");
  if (entry.localAt === ELSEWHERE_32 || entry.packedBytes === ELSEWHERE_32 || entry.sizeBytes === ELSEWHERE_32)
    throw zip64();
  if (entry.sizeBytes > maxBytes) throw tooLarge(maxBytes);
  const packed = packedBytesOf(archive, directory.at, { entry, name });
  const plain = unpack(packed, entry, maxBytes);
  if (plain.length !== entry.sizeBytes || crc32(plain) !== entry.sum)
    throw damaged(`${name} is not what the archive says it is`);
  return plain;
}

interface Directory {
  readonly at: number;
  readonly end: number;
  readonly count: number;
}

/** At the end, followed at most by a comment of the length it names. */
function directoryOf(archive: Buffer): Directory {
  const first = Math.max(0, archive.length - END_BYTES - MAX_COMMENT_BYTES);
  let end = archive.length - END_BYTES;
  while (end >= first && !isEnd(archive, end)) end -= 1;
  if (end < first) throw notZip(archive);
  const count = archive.readUInt16LE(end + 10);
  const sizeBytes = archive.readUInt32LE(end + 12);
  const at = archive.readUInt32LE(end + 16);
  if (count === ELSEWHERE_16 || sizeBytes === ELSEWHERE_32 || at === ELSEWHERE_32) throw zip64();
  // The disk it ends on, the disk it begins on, and how many entries are on this one.
  if (archive.readUInt32LE(end + 4) !== 0 || archive.readUInt16LE(end + 8) !== count)
    throw refused("it is one part of a divided archive", SAVE_AGAIN);
  if (count > MAX_ENTRIES) throw refused(`it has over ${MAX_ENTRIES} parts`, SAVE_AGAIN);
  if (at + sizeBytes > end) throw damaged("its list of parts is cut off");
  return { at, end: at + sizeBytes, count };
}

function isEnd(archive: Buffer, at: number): boolean {
  return archive.readUInt32LE(at) === END && at + END_BYTES + archive.readUInt16LE(at + 20) === archive.length;
}

/** Two entries of one name are refused: programs differ in which one they show. */
function findEntry(archive: Buffer, { at: begin, end, count }: Directory, name: string): Entry | undefined {
  const wanted = Buffer.from(name);
  let found: Entry | undefined;
  let at = begin;
  for (let number = 0; number < count; number += 1) {
    if (at + ENTRY_BYTES > end || archive.readUInt32LE(at) !== ENTRY) throw damaged("its list of parts is cut off");
    const nameEnd = at + ENTRY_BYTES + archive.readUInt16LE(at + 28);
    const next = nameEnd + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
    if (next > end) throw damaged("its list of parts is cut off");
    if (wanted.equals(archive.subarray(at + ENTRY_BYTES, nameEnd))) {
      if (found !== undefined) throw damaged(`${name} is in it twice`);
      found = {
        flags: archive.readUInt16LE(at + 8),
        method: archive.readUInt16LE(at + 10),
        sum: archive.readUInt32LE(at + 16),
        packedBytes: archive.readUInt32LE(at + 20),
        sizeBytes: archive.readUInt32LE(at + 24),
        localAt: archive.readUInt32LE(at + 42),
      };
    }
    at = next;
  }
  return found;
}

/** The header before the data repeats the directory, or leaves sizes to a descriptor after the data. */
function packedBytesOf(
  archive: Buffer,
  directoryAt: number,
  { entry, name }: { readonly entry: Entry; readonly name: string },
): Buffer {
  const { localAt, packedBytes } = entry;
  if (localAt + LOCAL_BYTES > directoryAt || archive.readUInt32LE(localAt) !== LOCAL)
    throw damaged(`${name} is not where the archive says it is`);
  const nameEnd = localAt + LOCAL_BYTES + archive.readUInt16LE(localAt + 26);
  const begin = nameEnd + archive.readUInt16LE(localAt + 28);
  const isNamed = Buffer.from(name).equals(archive.subarray(localAt + LOCAL_BYTES, nameEnd));
  if (!isNamed || begin + packedBytes > directoryAt) throw damaged(`${name} is not where the archive says it is`);
  return archive.subarray(begin, begin + packedBytes);
}

function unpack(packed: Buffer, { method, sizeBytes }: Entry, maxBytes: number): Buffer {
  if (method === STORED) return packed;
  if (method !== DEFLATED) throw refused(`it is packed in a way that is not supported (${method})`, SAVE_AGAIN);
  try {
    // One byte more than the declared size is enough to detect a lie.
    return inflateRawSync(packed, { maxOutputLength: Math.min(sizeBytes, maxBytes) + 1 });
  } catch (error) {
    throw damaged("its content does not match its size or checksum", error);
  }
}

const SAVE_AGAIN = "open it, and save it again as .docx";

function refused(what: string, remedy: string, cause?: unknown): HeddleError {
  return new HeddleError("task.invalid", `${what}; ${remedy}`, cause === undefined ? {} : { cause });
}

function damaged(what: string, cause?: unknown): HeddleError {
  return refused(`it is damaged: ${what}`, SAVE_AGAIN, cause);
}

function tooLarge(maxBytes: number): HeddleError {
  return refused(`its text is over ${maxBytes / 1024 / 1024} MiB`, "a task is a page or two");
}

function zip64(): HeddleError {
  return refused("it is packed as zip64, for archives of gigabytes", SAVE_AGAIN);
}

/** A docx with a password, and every .doc, is an OLE container. */
const COMPOUND_FILE = Buffer.from("d0cf11e0a1b11ae1", "hex");

function notZip(archive: Buffer): HeddleError {
  if (archive.subarray(0, COMPOUND_FILE.length).equals(COMPOUND_FILE))
    return refused("it has a password, or is a .doc by another name", "save it as .docx without a password");
  return refused("it is not a .docx, or its end is missing", SAVE_AGAIN);
}

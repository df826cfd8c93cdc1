/** Writes a zip archive of a few small, uncompressed files. */
import { crc32 } from "node:zlib";

export interface ZipFile {
  readonly name: string;
  readonly text: string;
}

/** 2.0, which every reader supports. */
const VERSION = 20;
const FLAGS = 0x0800;
/** The earliest date, so that the same files give the same bytes. */
const DATE = 0x0021;

export function zipOf(files: readonly ZipFile[]): Buffer {
  const parts: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const { name, text } of files) {
    const [named, data] = [Buffer.from(name), Buffer.from(text)];
    const fields = fieldsOf(named, data);
    const local = Buffer.concat([uint32(0x04034b50), fields, named, data]);
    // Version, fields, no comment, first disk, no attributes, offset.
    entries.push(Buffer.concat([uint32(0x02014b50), uint16(VERSION), fields, Buffer.alloc(10), uint32(at), named]));
    parts.push(local);
    at += local.length;
  }
  const directory = Buffer.concat(entries);
  const counts = [uint16(0), uint16(0), uint16(files.length), uint16(files.length)];
  const end = [uint32(0x06054b50), ...counts, uint32(directory.length), uint32(at), uint16(0)];
  return Buffer.concat([...parts, directory, ...end]);
}

/** Shared by the header of a file and its directory entry. */
function fieldsOf(name: Buffer, data: Buffer): Buffer {
  return Buffer.concat([
    ...[VERSION, FLAGS, 0, 0, DATE].map(uint16),
    ...[crc32(data), data.length, data.length].map(uint32),
    ...[name.length, 0].map(uint16),
  ]);
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

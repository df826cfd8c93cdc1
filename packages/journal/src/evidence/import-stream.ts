/** Streams of what was imported: by the key that signed it and the stream it came from, so that the same comes to the same place. */
const PREFIX = "import_";
/** As file names, with what is put around them. */
const MAX_ORIGIN_CHARS = 128;

export function isImport(stream: string): boolean {
  return stream.startsWith(PREFIX);
}

/** `attempt`: how often it was purged before; a stream that was purged takes nothing any more. */
export function importStream(keyId: string, origin: string, attempt: number): string {
  const name = origin.replaceAll(/[^A-Za-z0-9._-]/g, "-").slice(0, MAX_ORIGIN_CHARS);
  return `${PREFIX}${keyId}_${name}${attempt === 0 ? "" : `~${attempt}`}`;
}

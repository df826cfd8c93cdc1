/** A stream that names a content by its hash, so that it is kept. */
export interface BlobUse {
  readonly sha256: string;
  readonly stream: string;
  /** When it named it last, in milliseconds since 1970. */
  readonly at: number;
}

/** Deleted threads use nothing, and that a content was removed is no use of it. */
export interface BlobQueries {
  /** Of these contents. */
  uses(names: readonly string[]): Promise<readonly BlobUse[]>;
}

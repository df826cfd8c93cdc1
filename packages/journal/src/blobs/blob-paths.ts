/** Where whole outputs lie that did not fit into the record: files in `blobs` of the home, named by the SHA-256 of their content. */
import { join } from "node:path";

export const BLOB_NAME = /^[0-9a-f]{64}$/;

export function blobsFolder(home: string): string {
  return join(home, "blobs");
}

/** undefined: it is no name of a blob. */
export function blobPath(home: string, name: string): string | undefined {
  return BLOB_NAME.test(name) ? join(blobsFolder(home), name) : undefined;
}

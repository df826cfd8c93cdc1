/** Whole outputs by their hash: loaded by nothing that only runs turns without any. */
export { readBlob } from "./blobs/blob-files.ts";
export { blobPath } from "./blobs/blob-paths.ts";
export { collectBlobs, type CollectedBlob, type CollectRule } from "./blobs/collect.ts";

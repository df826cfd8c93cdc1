/** Params of `fs/*`. That a path is absolute is said by the handler, in the original's words. */
import { z } from "zod";

const path = z.string();
const flag = z.boolean().nullish();

export const FsPathParams = z.object({ path });
export type FsPathParams = z.infer<typeof FsPathParams>;

export const FsWriteFileParams = z.object({ path, dataBase64: z.string() });
export type FsWriteFileParams = z.infer<typeof FsWriteFileParams>;

export const FsCreateDirectoryParams = z.object({ path, recursive: flag });
export type FsCreateDirectoryParams = z.infer<typeof FsCreateDirectoryParams>;

export const FsRemoveParams = z.object({ path, recursive: flag, force: flag });
export type FsRemoveParams = z.infer<typeof FsRemoveParams>;

export const FsCopyParams = z.object({ sourcePath: path, destinationPath: path, recursive: flag });
export type FsCopyParams = z.infer<typeof FsCopyParams>;

export const FsWatchParams = z.object({ watchId: z.string(), path });
export type FsWatchParams = z.infer<typeof FsWatchParams>;

export const FsUnwatchParams = z.object({ watchId: z.string() });
export type FsUnwatchParams = z.infer<typeof FsUnwatchParams>;

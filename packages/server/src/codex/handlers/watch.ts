/** `fs/watch`: changes directly in a folder, or of one path, sent to the connection that asked. */
import { watch as watchFolder, type FSWatcher } from "node:fs";
import path from "node:path";
import { factsInside, openFolderInside, type PathRules } from "@heddle/tools/files";
import type { Handler } from "../../rpc/call.ts";
import type { Connection } from "../../rpc/connection.ts";
import { absolutePath, fileRules } from "../../host/file-rules.ts";
import { asOsError } from "../../host/host-error.ts";
import { refuse } from "../thread-facts.ts";

/** An editor makes several changes for one save; they are sent together. */
const GATHER_MS = 100;
/** Beyond these the folder itself is named: look again. */
const MAX_PATHS = 500;
const MAX_WATCHES = 256;

const watches = new WeakMap<Connection, Map<string, Watch>>();

export const watch: Handler<"fs/watch"> = async ({ watchId, path: wanted }, call) => {
  const { connection } = call;
  const watched = absolutePath(wanted);
  const own = watches.get(connection) ?? new Map<string, Watch>();
  watches.set(connection, own);
  if (own.has(watchId)) throw refuse(`watchId already exists: ${watchId}`);
  if (own.size >= MAX_WATCHES) throw refuse(`a connection may watch ${MAX_WATCHES} paths; end one with fs/unwatch`);
  const opened = open(watched, fileRules(call), (changedPaths) =>
    connection.notify({ method: "fs/changed", params: { watchId, changedPaths } }),
  );
  const forget = connection.ends.add({ [Symbol.asyncDispose]: async () => opened.close() });
  own.set(watchId, { close: () => (forget(), opened.close()) });
  return { result: { path: opened.realPath } };
};

export const unwatch: Handler<"fs/unwatch"> = async ({ watchId }, { connection }) => {
  const own = watches.get(connection);
  own?.get(watchId)?.close();
  own?.delete(watchId);
  return { result: {} };
};

interface Watch {
  close(): void;
}

function open(
  watched: string,
  rules: PathRules,
  tell: (paths: readonly string[]) => void,
): Watch & { realPath: string } {
  try {
    const facts = watched === "/" ? undefined : factsInside(watched, rules);
    const isFolder = watched === "/" || facts?.kind === "directory";
    // A file is watched in its folder: it may be replaced, or not be there yet.
    const folder = isFolder ? watched : path.dirname(watched);
    const only = isFolder ? undefined : path.basename(watched);
    using opened = openFolderInside(folder, rules);
    const gathered = gather(folder, tell);
    const watcher: FSWatcher = watchFolder(opened.address, { persistent: false }, (_kind, name) => {
      if (name !== null && (only === undefined || name === only)) gathered.add(path.join(folder, name));
    });
    // The folder was removed, or the kernel has no watches left.
    watcher.on("error", () => watcher.close());
    return {
      realPath: facts?.realPath ?? watched,
      close() {
        gathered.close();
        watcher.close();
      },
    };
  } catch (error) {
    throw asOsError(error);
  }
}

function gather(folder: string, tell: (paths: readonly string[]) => void): Watch & { add(file: string): void } {
  const paths = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    timer = undefined;
    const changed = paths.size > MAX_PATHS ? [folder] : [...paths].sort();
    paths.clear();
    tell(changed);
  };
  return {
    add(file) {
      if (paths.size <= MAX_PATHS) paths.add(file);
      timer ??= setTimeout(flush, GATHER_MS);
    },
    close: () => clearTimeout(timer),
  };
}

/**
 * Folders of the programs of configured servers that a sandbox would hide: /tmp and /var/tmp are private inside. The
 * whole folder below them stays visible, because a program needs the files around it.
 */
import { isAbsolute, sep } from "node:path";
import type { McpServerConfig } from "@heddle/protocol";

const PRIVATE_FOLDERS = ["/tmp", "/var/tmp"] as const;

export function programFolders(servers: readonly McpServerConfig[]): string[] {
  const paths = servers.flatMap((server) =>
    "command" in server ? [server.command, ...server.args, server.cwd ?? ""] : [],
  );
  return foldersAround(paths);
}

/** Of these paths. */
export function foldersAround(paths: readonly string[]): string[] {
  const folders = paths.filter(isAbsolute).flatMap((path) =>
    PRIVATE_FOLDERS.filter((folder) => path.startsWith(`${folder}/`)).map((folder) => {
      const [first] = path.slice(folder.length + 1).split(sep);
      return `${folder}/${first}`;
    }),
  );
  return [...new Set(folders)];
}

/** `fs/*`: the machine's files, within what `file-rules.ts` allows. Nothing is looked at by a name twice. */
import {
  copyFileInside,
  copyTreeInside,
  factsInside,
  listInside,
  makeFolderInside,
  readFileInside,
  removeInside,
  writeFileInside,
  type PathRules,
} from "@heddle/tools/files";
import type { Handler } from "../../rpc/call.ts";
import { absolutePath, fileRules } from "../../host/file-rules.ts";
import { asOsError, base64Bytes, errnoOf } from "../../host/host-error.ts";
import type { Reply } from "../../rpc/peer.ts";
import { refuse } from "../thread-facts.ts";

/** In base64 it fits into one message. */
const MAX_FILE_BYTES = 12 * 1024 * 1024;
const READ_MS = 30_000;
const MAX_ENTRIES = 20_000;

export const readFile: Handler<"fs/readFile"> = async (params, call) => {
  const file = absolutePath(params.path);
  return asReply(async () => {
    const rules = fileRules(call);
    const facts = requireFacts(file, rules);
    if (facts.kind !== "file") throw refuse(`path \`${file}\` is not a file`);
    if (facts.sizeBytes > MAX_FILE_BYTES) throw refuse(tooLarge(file));
    const limits = { maxBytes: MAX_FILE_BYTES + 1, signal: AbortSignal.timeout(READ_MS) };
    const { bytes } = await readFileInside(file, rules, limits);
    // It may have grown since.
    if (bytes.length > MAX_FILE_BYTES) throw refuse(tooLarge(file));
    return { dataBase64: bytes.toString("base64") };
  });
};

function tooLarge(file: string): string {
  return `path \`${file}\` is larger than ${MAX_FILE_BYTES} bytes; read it in parts with command/exec`;
}

export const writeFile: Handler<"fs/writeFile"> = async (params, call) => {
  const file = absolutePath(params.path);
  const bytes = base64Bytes(params.dataBase64);
  if (!Buffer.isBuffer(bytes)) throw refuse(`fs/writeFile requires valid base64 dataBase64: ${bytes.problem}`);
  return asReply(async () => {
    await writeFileInside(file, bytes, fileRules(call), { createParents: false });
    return {};
  });
};

export const createDirectory: Handler<"fs/createDirectory"> = async ({ path, recursive }, call) => {
  const folder = absolutePath(path);
  const createParents = recursive ?? true;
  return asReply(async () => {
    const rules = fileRules(call);
    // An existing folder is not written, so it may be anywhere.
    const isThere = createParents && (folder === "/" || factsOrUndefined(folder, rules)?.kind === "directory");
    if (!isThere) await makeFolderInside(folder, rules, { createParents });
    return {};
  });
};

export const getMetadata: Handler<"fs/getMetadata"> = async (params, call) => {
  const file = absolutePath(params.path);
  return asReply(async () => {
    if (file === "/") return { isDirectory: true, isFile: false, isSymlink: false, createdAtMs: 0, modifiedAtMs: 0 };
    const { kind, isSymlink, createdAtMs, modifiedAtMs } = requireFacts(file, fileRules(call));
    return { isDirectory: kind === "directory", isFile: kind === "file", isSymlink, createdAtMs, modifiedAtMs };
  });
};

export const readDirectory: Handler<"fs/readDirectory"> = async (params, call) => {
  const folder = absolutePath(params.path);
  return asReply(async () => {
    const rules = fileRules(call);
    if (folder !== "/" && requireFacts(folder, rules).kind !== "directory") throw osError("ENOTDIR");
    const { entries, isTruncated } = await listInside(folder, rules, { maxEntries: MAX_ENTRIES });
    const shown = entries.flatMap(({ name, kind }) => {
      // A link is shown as its target; one without a readable target is left out.
      const found =
        kind === "symlink" ? factsOrUndefined(`${folder === "/" ? "" : folder}/${name}`, rules)?.kind : kind;
      return found === undefined
        ? []
        : [{ fileName: name, isDirectory: found === "directory", isFile: found === "file" }];
    });
    return { entries: shown, ...(isTruncated ? { isTruncated } : {}) };
  });
};

export const remove: Handler<"fs/remove"> = async ({ path, recursive, force }, call) => {
  const file = absolutePath(path);
  return asReply(async () => {
    try {
      await removeInside(file, fileRules(call), { isRecursive: recursive ?? true });
    } catch (error) {
      if (errnoOf(error) !== "ENOENT" || force === false) throw error;
    }
    return {};
  });
};

export const copy: Handler<"fs/copy"> = async (params, call) => {
  const from = absolutePath(params.sourcePath);
  const to = absolutePath(params.destinationPath);
  return asReply(async () => {
    const rules = fileRules(call);
    const facts = requireFacts(from, rules);
    if (facts.kind !== "directory") {
      await copyFileInside(from, to, rules);
      return {};
    }
    if (params.recursive !== true) throw refuse("fs/copy requires recursive: true when sourcePath is a directory");
    const target = factsOrUndefined(to, rules)?.realPath ?? to;
    if ([target, to].some((end) => `${end}/`.startsWith(`${facts.realPath}/`) || `${end}/`.startsWith(`${from}/`))) {
      throw refuse("fs/copy cannot copy a directory to itself or one of its descendants");
    }
    await copyTreeInside(from, to, rules);
    return {};
  });
};

type Facts = NonNullable<ReturnType<typeof factsInside>>;

function requireFacts(file: string, rules: PathRules): Facts {
  const facts = factsInside(file, rules);
  if (facts === undefined) throw osError("ENOENT");
  return facts;
}

/** Undefined also for paths that may not be read: the operation itself is then refused. */
function factsOrUndefined(file: string, rules: PathRules): Facts | undefined {
  try {
    return factsInside(file, rules);
  } catch {
    return undefined;
  }
}

function osError(code: string): unknown {
  return asOsError(Object.assign(new Error(code), { code }));
}

async function asReply(work: () => Promise<unknown>): Promise<Reply> {
  try {
    return { result: await work() };
  } catch (error) {
    throw asOsError(error);
  }
}

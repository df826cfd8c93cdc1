/** Programs that keep a file of JSON lines for each conversation: where these files are, and what is said of it in its first lines. */
import path from "node:path";
import { z } from "zod";

/** What the lines of a record say of the conversation; absent: nothing. */
export interface About {
  /** The whole name of the conversation, where that of its file is only the beginning. */
  readonly handle?: string | undefined;
  readonly folder?: string | undefined;
  readonly title?: string | undefined;
}

export interface RecordLayout {
  /** Below the first folder of the program; what was put away comes last. */
  readonly folders: readonly { readonly name: string; readonly isArchive?: true }[];
  /** Of folders below these. */
  readonly depth: number;
  /** The path of a record below its folder. The first group is the handle, or its first characters. */
  readonly file: RegExp;
  readonly about: (line: unknown) => About;
  /** Beside a record, a file with nothing but the folder that was worked in. */
  readonly folderFile?: (file: string) => string;
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

const Codex = z.object({
  type: z.string(),
  payload: z.looseObject({ type: z.string().optional(), cwd: z.string().optional(), message: z.unknown().optional() }),
});
const CODEX: RecordLayout = {
  folders: [{ name: "sessions" }, { name: "archived_sessions", isArchive: true }],
  // By year, month and day.
  depth: 3,
  file: new RegExp(`^(?:.*/)?rollout-[^/]*-(${UUID})\\.jsonl$`),
  about(line) {
    const { type, payload } = Codex.safeParse(line).data ?? {};
    if (type === "session_meta") return { folder: payload?.cwd };
    const isSaid = type === "event_msg" && payload?.type === "user_message";
    return isSaid && typeof payload.message === "string" ? { title: payload.message } : {};
  },
};

const Claude = z.looseObject({
  type: z.string(),
  cwd: z.string().optional(),
  isMeta: z.boolean().optional(),
  isSidechain: z.boolean().optional(),
  message: z.looseObject({ content: z.unknown() }).optional(),
});
const Blocks = z.array(z.looseObject({ type: z.string(), text: z.string().optional() }));
const CLAUDE: RecordLayout = {
  folders: [{ name: "projects" }],
  // By folder of work.
  depth: 1,
  file: new RegExp(`^[^/]+/(${UUID})\\.jsonl$`),
  about(line) {
    const { type, cwd: folder, message, isMeta, isSidechain } = Claude.safeParse(line).data ?? {};
    if (type !== "user" || isMeta === true || isSidechain === true) return { folder };
    const content = message?.content;
    const title =
      typeof content === "string" ? content : Blocks.safeParse(content).data?.find(({ text }) => text)?.text;
    return { folder, title };
  },
};

const Copilot = z.object({
  type: z.string(),
  data: z.looseObject({
    context: z.looseObject({ cwd: z.string().optional() }).optional(),
    content: z.unknown().optional(),
    source: z.string().optional(),
  }),
});
const COPILOT: RecordLayout = {
  folders: [{ name: "session-state" }],
  depth: 1,
  file: new RegExp(`^(${UUID})/events\\.jsonl$`),
  about(line) {
    const { type, data } = Copilot.safeParse(line).data ?? {};
    if (type === "session.start") return { folder: data?.context?.cwd };
    const isSaid = type === "user.message" && data?.source === undefined;
    return isSaid && typeof data?.content === "string" ? { title: data.content } : {};
  },
};

const Parts = z.array(z.looseObject({ text: z.string().optional() }));
const Gemini = z.looseObject({
  sessionId: z.string().optional(),
  type: z.string().optional(),
  content: z.unknown().optional(),
});
const GEMINI: RecordLayout = {
  folders: [{ name: "tmp" }],
  // By project, and there among its chats.
  depth: 2,
  file: /^[^/]+\/chats\/session-[^/]*-([0-9a-f]{8})\.jsonl$/,
  about(line) {
    const { sessionId: handle, type, content } = Gemini.safeParse(line).data ?? {};
    if (type !== "user") return { handle };
    return {
      title: typeof content === "string" ? content : Parts.safeParse(content).data?.find(({ text }) => text)?.text,
    };
  },
  folderFile: (file) => path.join(path.dirname(file), "..", ".project_root"),
};

const Qwen = z.looseObject({
  type: z.string(),
  cwd: z.string().optional(),
  provenance: z.string().optional(),
  message: z.looseObject({ parts: z.unknown() }).optional(),
});
const QWEN: RecordLayout = {
  folders: [{ name: "projects" }],
  // By folder of work, and there among its chats.
  depth: 2,
  file: new RegExp(`^[^/]+/chats/(${UUID})\\.jsonl$`),
  about(line) {
    const { type, cwd: folder, message } = Qwen.safeParse(line).data ?? {};
    if (type !== "user") return { folder };
    return { folder, title: Parts.safeParse(message?.parts).data?.find(({ text }) => text)?.text };
  },
};

export const RECORD_LAYOUTS = { codex: CODEX, claude: CLAUDE, copilot: COPILOT, gemini: GEMINI, qwen: QWEN };

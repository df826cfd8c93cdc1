/** Codex with a process of `codex exec --json` for each prompt. */
import type { Subject } from "../subject.ts";
import { codexSubject } from "../codex-subject.ts";

export const subject: Subject = { ...codexSubject, name: "codex-exec", protocol: "codex-exec" };

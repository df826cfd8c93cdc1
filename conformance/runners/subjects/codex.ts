/** Codex over app-server. */
import type { Subject } from "../subject.ts";
import { codexSubject } from "../codex-subject.ts";

export const subject: Subject = { ...codexSubject, name: "codex", protocol: "codex" };

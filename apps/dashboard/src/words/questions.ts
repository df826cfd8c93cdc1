/** A question of an agent as a sentence, and the exact thing that is asked for: what is allowed is what is shown. */
import type { ApprovalQuestion } from "@heddle/protocol/http";
import { line } from "../text/shown.ts";

export interface QuestionWords {
  /** `Run this **outside the sandbox**?`, without the stars. */
  readonly before: string;
  readonly strong: string;
  readonly after: string;
  /** A command, paths, arguments: one entry a line. Empty: the sentence says all. */
  readonly exact: readonly string[];
  readonly where?: string;
  readonly reason?: string;
  /** What allowing means, in plain words. */
  readonly scope: string;
  /** It leads out of the sandbox, which only an owner allows. */
  readonly isBeyond: boolean;
}

export function questionWords(question: ApprovalQuestion): QuestionWords {
  const reason = question.reason === undefined ? {} : { reason: line(question.reason) };
  switch (question.kind) {
    case "command":
      return {
        ...beyond("Run this", question.wish),
        exact: [line(question.command)],
        where: line(question.cwd),
        ...reason,
      };
    case "fileChange":
      return { ...beyond("Change these files", question.wish), exact: question.paths.map(line), ...reason };
    case "tool":
      return {
        ...beyond("Call this tool", question.wish),
        exact: [line(question.tool), line(JSON.stringify(question.arguments))],
        ...reason,
      };
    case "userInput":
      return {
        ...plain(
          question.questions.length === 1 ? "The agent asks" : `The agent asks ${question.questions.length} things`,
          "",
        ),
        exact: [],
        ...reason,
      };
    case "elicitation":
      return {
        ...plain("The MCP server ", `${line(question.server)} asks`),
        after: `: ${line(question.message)}`,
        exact: [],
        ...reason,
      };
    case "permissions": {
      const { write, network } = question.permissions;
      return {
        before: "May it have ",
        strong: "more rights",
        after: "?",
        exact: [...(network ? ["the network"] : []), ...write.map((path) => `write: ${line(path)}`)],
        where: line(question.cwd),
        ...reason,
        scope: "for the calls that follow",
        isBeyond: true,
      };
    }
  }
}

type Wish = Extract<ApprovalQuestion, { kind: "command" }>["wish"];

function beyond(what: string, wish: Wish): Omit<QuestionWords, "exact"> {
  if (wish === undefined)
    return { before: `${what}`, strong: "", after: "?", scope: "in the sandbox", isBeyond: false };
  if (wish.kind === "outside")
    return {
      before: `${what} `,
      strong: "outside the sandbox",
      after: "?",
      scope: "this once, without any sandbox, recorded",
      isBeyond: true,
    };
  const { network, write } = wish.permissions;
  const rights = [...(network ? ["the network"] : []), ...write.map((path) => `write access to ${line(path)}`)];
  return {
    before: `${what} `,
    strong: `with ${rights.join(" and ") || "more rights"}`,
    after: "?",
    scope: "this once, in a wider sandbox, recorded",
    isBeyond: true,
  };
}

function plain(before: string, strong: string): Omit<QuestionWords, "exact"> {
  return { before, strong, after: "", scope: "", isBeyond: false };
}

/** The same as one sentence, for titles, lists and screen readers. */
export function questionSentence(question: ApprovalQuestion): string {
  const { before, strong, after, exact } = questionWords(question);
  if (question.kind === "userInput") return line(question.questions.map((one) => one.question).join(" "));
  return `${before}${strong}${after}${exact.length === 0 ? "" : ` ${exact.join(", ")}`}`;
}

export interface Given {
  readonly decision: string;
  readonly author: string;
}

const DECISIONS: Readonly<Record<string, string>> = {
  accept: "allowed",
  acceptForThread: "allowed for this thread",
  decline: "denied",
  cancel: "denied, and the turn stopped,",
};

/** What became of a question, and by whom. */
export function answeredText(
  kind: ApprovalQuestion["kind"],
  { decision, author }: Given,
  me: string | undefined,
): string {
  if (author === "policy:timeout") return "denied: no answer came in time";
  if (author === "system") return "taken back: the turn has ended";
  const isText = kind === "userInput" || kind === "elicitation";
  const what = isText && decision === "accept" ? "answered" : (DECISIONS[decision] ?? decision);
  return `${what} by ${author === `user:${me ?? ""}` ? "you" : line(author.replace(/^user:/, ""))}`;
}

/** Letters that may only look like those of a command are named by their code points. */
export function strangers(text: string): readonly string[] {
  const found = new Set(text.match(/[^\x20-\x7e]/gu));
  return [...found].map(
    (letter) => `${letter} U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
}

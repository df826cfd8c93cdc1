/**
 * Issues and comments of GitHub. Anybody can write those; an order is only what somebody with rights in the repository
 * made one: an issue they gave the label, a comment of theirs that begins with the command. Their text is the goal and
 * never says where or how it runs.
 */
import { createHash } from "node:crypto";
import { hmac, isSame } from "../../notify/signature.ts";
import { header, ignored, table, textIn, type Parsed, type Parser, type WebhookSource } from "./source.ts";

const DEFAULT_LABEL = "heddle";
const DEFAULT_COMMAND = "/heddle";
const WITH_RIGHTS: ReadonlySet<unknown> = new Set(["OWNER", "MEMBER", "COLLABORATOR"]);

type Table = Readonly<Record<string, unknown>>;

export const github: Parser = {
  isSigned(inbound, secret) {
    const given = header(inbound, "x-hub-signature-256") ?? "";
    return isSame(given, `sha256=${hmac(secret, inbound.body)}`);
  },
  parse(inbound, source) {
    const event = header(inbound, "x-github-event") ?? "";
    const given = table(JSON.parse(inbound.body.toString("utf8")));
    // Its signature has no time, but the signed body is of one event: the same body is the same order.
    const id = createHash("sha256").update(inbound.body).digest("hex");
    if (event === "issues") return withId(labelled(given, source), id);
    if (event === "issue_comment") return withId(commented(given, source), id);
    return ignored(`no order is made from ${event === "" ? "a request without x-github-event" : event}`);
  },
};

function labelled(given: Table, source: WebhookSource): Parsed {
  const wanted = source.label ?? DEFAULT_LABEL;
  const isOrder = given["action"] === "labeled" && table(given["label"])["name"] === wanted;
  const issue = table(given["issue"]);
  if (!isOrder) return ignored(`only an issue that gets the label ${wanted} is an order`);
  return orderOf(given, source, [textIn(issue["title"]), textIn(issue["body"]), textIn(issue["html_url"])]);
}

function commented(given: Table, source: WebhookSource): Parsed {
  const command = source.command ?? DEFAULT_COMMAND;
  const comment = table(given["comment"]);
  const issue = table(given["issue"]);
  const text = (textIn(comment["body"]) ?? "").trimStart();
  const rest = text.slice(command.length);
  if (given["action"] !== "created" || !text.startsWith(command) || !/^(?:\s|$)/.test(rest)) {
    return ignored(`only a new comment that begins with ${command} is an order`);
  }
  if (!WITH_RIGHTS.has(comment["author_association"]))
    return ignored("its author has no write access to the repository");
  const asked = textIn(rest.trim()) ?? textIn(issue["title"]);
  const about = `It is about: ${textIn(issue["title"]) ?? ""} ${textIn(comment["html_url"]) ?? ""}`.trim();
  return orderOf(given, source, [asked, about, textIn(issue["body"])]);
}

function orderOf(given: Table, { workspaces }: WebhookSource, parts: readonly (string | undefined)[]): Parsed {
  const repository = textIn(table(given["repository"])["full_name"]) ?? "";
  const title = textIn(table(given["issue"])["title"]) ?? "issue";
  const number = table(given["issue"])["number"];
  const url = textIn(table(given["issue"])["html_url"]);
  const name = `${repository}#${typeof number === "number" ? number : ""} ${title}`.slice(0, 120);
  const workspace =
    workspaces !== undefined && Object.hasOwn(workspaces, repository) ? workspaces[repository] : undefined;
  return {
    kind: "order",
    fields: { name, goal: parts.filter((part) => part !== undefined).join("\n\n") },
    workspace,
    ...(url === undefined ? {} : { ref: url }),
  };
}

function withId(parsed: Parsed, id: string): Parsed {
  return parsed.kind === "order" ? { ...parsed, id } : parsed;
}

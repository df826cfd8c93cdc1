#!/usr/bin/env node
// Verifies a bundle of Heddle with nothing but Node: node examples/verify-bundle.mjs FILE [PUBLIC-KEY.pem]
// Written from docs/build/bundle-format.md alone; it shares no code with Heddle. Of level 4 it leaves out effects, limits,
// approvals of single calls, ceilings and proofs of gates.
// Exit code: 0 clean, 1 violation, 2 tampered, 3 cannot verify.
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { posix } from "node:path";

process.on("uncaughtException", ({ message }) => process.exit((console.log(`cannot verify: ${message}`), 3)));
const [file, keyFile] = process.argv.slice(2);
const found = [];
const say = (rank) => (code, where) => void found.push({ rank, code, where });
const [unproven, violation, tampered] = [say(1), say(2), say(3)];
const sha256 = (text) => createHash("sha256").update(text).digest("hex");
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(",")}}`;
}
const isSigned = (value, signature) =>
  key !== undefined && verify(undefined, Buffer.from(canonical(value)), key, Buffer.from(signature, "base64"));
let key, header, ended, blob; // blob: { name, hash }
let stream; // { name, last, version, hash, signedTo, due, purged, replay }
const count = { event: 0, checkpoint: 0 };
const left = new Set();
const digest = createHash("sha256");
const readers = { header: readHeader, stream: openStream, checkpoint: readCheckpoint, event: readEvent };
Object.assign(readers, { blob: readBlob, end: readEnd });

for (const text of readFileSync(file, "utf8").split("\n")) {
  if (text.trim() === "") continue;
  const line = parsed(text);
  const isFine = line?.kind !== undefined && !ended && (header === undefined) === (line.kind === "header");
  if (!isFine || (["checkpoint", "event"].includes(line.kind) && stream === undefined)) {
    tampered("line_out_of_order", text.slice(0, 40));
    continue;
  }
  if (line.kind !== "end") digest.update(`${text}\n`);
  if (Object.hasOwn(readers, line.kind)) readers[line.kind](line);
  else tampered("unknown_kind", line.kind);
}
if (header === undefined) throw new Error("this is not a bundle");
closeStream();
if (!ended) tampered("end_missing", "");
if (count.event === 0) unproven("nothing_to_verify", "");

const rank = Math.max(0, ...found.map((one) => one.rank));
console.log(`${["clean", "cannot verify", "violation", "tampered"][rank]}: ${count.event} events`);
for (const { code, where } of found.slice(0, 50)) console.log(`  ${code} ${where}`);
process.exit([0, 3, 1, 2][rank]);

function readHeader(line) {
  header = line;
  if (line.format !== "heddle-export" || ![1, 2, 3].includes(line.v)) tampered("unknown_format", line.format);
  for (const subject of line.subjects ?? [line.thread]) left.add(subject);
  const pem = keyFile === undefined ? line.publicKey : readFileSync(keyFile, "utf8");
  if (pem === null) return unproven("key_missing", "");
  key = createPublicKey(pem);
  console.log(`key ${sha256(key.export({ type: "spki", format: "pem" })).slice(0, 16)}`);
}

function openStream({ stream: name, lastVersion: last }) {
  closeStream();
  left.delete(name);
  const hash = sha256(`heddle/1|${name}`);
  stream = { name, last, version: 0, hash, signedTo: 0, due: new Map(), purged: [], replay: createReplay() };
}

function readCheckpoint({ stream: name, version, hash, at, keyId, signature }) {
  count.checkpoint += 1;
  if (name !== stream.name || !isSigned({ checkpoint: 1, stream: name, version, hash, at, keyId }, signature))
    return tampered("checkpoint_forged", `${name} ${version}`);
  if ((stream.due.get(version) ?? hash) !== hash) tampered("checkpoint_forged", `${name} ${version}`);
  stream.due.set(version, hash);
}

function readEvent(row) {
  count.event += 1;
  const { stream: name, version, id, at, author, type, v, body, body_hash: bodyHash, prev_hash: prevHash, hash } = row;
  const where = `${name} ${version}`;
  const link = { chain: 1, stream: name, version, id, at, author, type, v, bodyHash, prevHash };
  if (name !== stream.name || version !== stream.version + 1) tampered("gap", where);
  else if (prevHash !== stream.hash) tampered("broken_link", where);
  else if (sha256(canonical(link)) !== hash) tampered("entry_altered", where);
  else if (body !== null && sha256(body) !== bodyHash) tampered("body_altered", where);
  if (body === null) stream.purged.push(where);
  else if (["thread.deleted", "evidence.purged"].includes(type)) stream.purged = [];
  Object.assign(stream, { version, hash });
  const signed = stream.due.get(version);
  stream.due.delete(version);
  if (signed === hash) stream.signedTo = version;
  else if (signed !== undefined) tampered("rewritten_before_checkpoint", where);
  const content = parsed(body);
  if (content !== undefined && content !== null) stream.replay.take({ type, author, where, body: content });
}

function readBlob({ sha256: name, data, isLast }) {
  blob ??= { name, hash: createHash("sha256") };
  blob.hash.update(Buffer.from(data, "base64"));
  if (header.v !== 3 || blob.name !== name) tampered("blob_out_of_order", name);
  if (isLast && blob.hash.digest("hex") !== name) violation("blob_altered", name);
  if (isLast) blob = undefined;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function closeStream() {
  if (stream === undefined) return;
  const { name, last, version, signedTo, due, purged, replay } = stream;
  if (version < Math.max(last, ...due.keys())) tampered("truncated", `${name} ${version}`);
  for (const where of purged) tampered("body_altered", where);
  if (signedTo < version) unproven("checkpoint_missing", `${name} ${signedTo}`);
  replay.end();
  stream = undefined;
}

function readEnd({ events, checkpoints, sha256: all, signature }) {
  if (stream?.name !== header.thread) tampered("file_corrupt", "its last stream is another");
  closeStream();
  ended = events === count.event && checkpoints === count.checkpoint;
  if (blob !== undefined) tampered("file_corrupt", "its last output has no end");
  for (const subject of left) tampered("file_corrupt", `${subject} is missing`);
  if (header.v === 1) return unproven("key_missing", "version 1 has no signature over all lines");
  const sum = digest.digest("hex");
  if (all !== sum) tampered("file_corrupt", "its lines were changed");
  else if (signature === null) unproven("key_missing", "no signature over all lines");
  else if (!isSigned({ seal: 1, sha256: sum }, signature)) tampered("checkpoint_forged", "over all lines");
}

// ---- levels 3 and 4 -----------------------------------------------------------------------------------------------

function createReplay() {
  const [turns, questions, ended, stack] = [new Map(), new Map(), new Set(), []];
  let [workspace, hasRemembered] = ["/", false];
  let current, lastLeft; // the envelope the thread is in, and the one it was in before
  const hashOf = (envelope) => sha256(canonical(envelope ?? null));
  const spec = (value, hash, where) => (hashOf(value) === hash ? value : unproven("spec_unknown", where));
  const enter = (turn, envelope) => turn && envelope && turn.all.push((turn.now = envelope));

  function take({ type, author, where, body }) {
    const turn = turns.get(body.turnId ?? body.duringTurn);
    if (type === "thread.created" || type === "thread.moved") workspace = body.workspace;
    if (type === "turn.admitted") {
      if (turn !== undefined || ended.has(body.turnId)) violation("ended_twice", where);
      turns.set(body.turnId, { calls: new Map(), all: [], one: new Map(), accepted: new Set() });
    } else if (type === "turn.started" && turn) enter(turn, spec(body.envelope, body.envelopeHash, where));
    else if (type === "turn.completed") {
      if (turn === undefined) violation(ended.has(body.turnId) ? "ended_twice" : "orphan_reply", where);
      for (const call of turn?.calls.values() ?? []) violation("unfinished_call", call.where);
      ended.add(body.turnId);
      turns.delete(body.turnId);
    } else if (type === "approval.requested") questions.set(body.approvalId, body.question?.callId);
    else if (type === "approval.resolved") {
      if (!questions.has(body.approvalId)) violation("orphan_reply", where);
      if (!["accept", "acceptForThread"].includes(body.decision)) return;
      hasRemembered ||= body.decision === "acceptForThread";
      turn?.accepted.add(body.approvalId).add(questions.get(body.approvalId));
    } else if (type === "tool.intended")
      turn?.calls.set(body.itemId, { where, problems: judge(turn, body, author, where) });
    else if (type === "tool.settled") {
      const call = turn?.calls.get(body.itemId);
      turn?.calls.delete(body.itemId);
      if (call === undefined && ["ok", "unknown"].includes(body.outcome)) violation("orphan_reply", where);
      if (body.outcome !== "denied") for (const code of call?.problems ?? []) violation(code, call.where);
    } else if (type === "hop.taken" && turn) {
      const to = spec(body.to, body.toHash, where);
      if (turn.now && hashOf(turn.now) !== body.from) violation("hop_without_edge", where);
      if (!turn.accepted.has(body.callId) && !(author === "policy:remembered" && hasRemembered))
        violation("hop_without_authority", where);
      if (body.scope !== "call") enter(turn, to);
      else if (to) turn.all.push(turn.one.set(body.callId, to).get(body.callId));
    } else if (type === "envelope.left") {
      if (hashOf(current) !== body.envelopeHash) violation("not_left", where);
      [lastLeft, current] = [current, undefined];
    } else if (type === "envelope.entered") {
      if (current !== undefined) violation("not_left", where);
      current = spec(body.envelope, body.envelopeHash, where);
      if (body.cause === "hop") hop(body, author, where, turn);
      if (body.cause === "back" && stack.pop()?.id !== body.envelope.id) violation("hop_without_edge", where);
      enter(turn, current);
    } else if (type === "network.used") {
      const isKnown = turn === undefined || turn.all.some(({ network }) => hasHost(network, body.host, body.port));
      if (!isKnown) violation("host_outside_envelope", where);
    } else if (type === "path.violated") violation("protected_path", where);
  }

  function hop({ envelope, hop: facts }, author, where, turn) {
    stack.push(lastLeft);
    const edges = (lastLeft?.exits ?? []).filter(({ to }) => to === envelope.id);
    const edge = edges.find(({ by }) => by.includes(facts.channel)) ?? edges[0];
    if (edge === undefined || facts.to !== envelope.id) return violation("hop_without_edge", where);
    const isOwn = { user: /^user/, task: /^(?!agent:)/, model: /^/ }[facts.channel]?.test(author);
    const isAsked = edge.approval === "auto" || facts.channel === "user" || turn?.accepted.has(facts.approvalId);
    if (!edge.by.includes(facts.channel) || !isOwn || !isAsked) violation("hop_without_authority", where);
    if (facts.guards.filter(({ isMet }) => isMet).length < (edge.guards ?? []).length) violation("guard_unmet", where);
  }

  function judge(turn, { tool, callId, arguments: args }, author, where) {
    if (author.startsWith("user")) return [];
    const envelope = turn.one.get(callId) ?? turn.now;
    if (envelope === undefined) return (unproven("spec_unknown", where), []);
    const names = (one) => one === tool || (one.endsWith("*") && tool.startsWith(one.slice(0, -1)));
    const isListed = envelope.tools.some(names);
    const paths = pathsOf(tool, args, workspace).filter(({ path, isWritten }) => !isAllowed(envelope, path, isWritten));
    return [...(isListed ? [] : ["tool_outside_envelope"]), ...paths.map(() => "path_outside_envelope")];
  }

  function end() {
    for (const { calls } of turns.values())
      for (const { problems, where } of calls.values()) for (const code of problems) violation(code, where);
  }
  return { take, end };
}

function pathsOf(tool, args, workspace) {
  const at = (path, isWritten) => ({ path: posix.resolve(workspace, path), isWritten });
  if (["edit", "write", "read"].includes(tool)) return [at(args.file_path, tool !== "read")];
  if (["list", "glob", "grep", "view_image"].includes(tool)) return [at(args?.path ?? ".", false)];
  if (["bash", "exec_command"].includes(tool)) return [at(args?.workdir ?? ".", false)];
  if (tool !== "apply_patch") return [];
  const lines = (typeof args === "string" ? args : args.patch).split(/\r?\n/);
  const names = lines.flatMap((line) => /^\*{3} (?:(?:Add|Delete|Update) File|Move to): (.+)$/.exec(line)?.[1] ?? []);
  return names.map((name) => at(posix.resolve(workspace, ...(args.folders ?? []), name.trim()), true));
}

function isAllowed({ writeRoots, readRoots, masked }, path, isWritten) {
  const below = (root, one = path) => one === root || one.startsWith(root === "/" ? root : `${root}/`);
  const roots = writeRoots.filter((root) => below(root));
  if (["/proc", "/dev", "/sys"].some((root) => below(root))) return false;
  if (masked.some((mask) => below(mask) && !roots.some((root) => root !== mask && below(mask, root)))) return false;
  return roots.length > 0 || (!isWritten && (readRoots === undefined || readRoots.some((root) => below(root))));
}

function hasHost(network, host, port) {
  if (!Array.isArray(network)) return network === "all";
  return network.some((rule) => {
    const [, address, name, own] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(rule) ?? [];
    const known = address ?? name;
    const isNamed = host === known || (known.startsWith("*.") && host.endsWith(known.slice(1)));
    return isNamed && (own === undefined ? [80, 443] : [Number(own)]).includes(port);
  });
}

import { realpathSync } from "node:fs";
import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApprovalPolicy, Envelope, HopRequest, Permissions, SandboxMode } from "@heddle/protocol";
import { expect, test } from "vitest";
import { envelopeFor, widenEnvelope } from "./envelopes.ts";
import { withinCeiling } from "./within-ceiling.ts";
import { exactRequest, foldersBeyond, grantedRequest } from "./hop-request.ts";

interface Folders extends AsyncDisposable {
  readonly root: string;
  readonly workspace: string;
  envelope(approval?: ApprovalPolicy, mode?: SandboxMode): Envelope;
}

async function openFolders(): Promise<Folders> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "heddle-hop-")));
  const workspace = join(root, "workspace");
  for (const name of ["workspace", "extra", "home"]) await mkdir(join(root, name));
  await writeFile(join(root, "file.txt"), "");
  await symlink(join(root, "extra"), join(workspace, "link"));
  await symlink(join(root, "home"), join(workspace, "door"));
  return {
    root,
    workspace,
    envelope: (approval = "on-request", mode = "workspace-write") =>
      envelopeFor({ mode, workspace, writableRoots: [], networkAccess: false, approval, masked: [join(root, "home")] }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

function wider(permissions: Partial<Permissions>): HopRequest {
  return { kind: "wider", permissions: { read: [], write: [], network: false, ...permissions } };
}

test("a request names what would really be opened, and nothing that is there already", async () => {
  await using folders = await openFolders();
  const { root, workspace } = folders;
  const exact = (request: HopRequest) => exactRequest(request, folders.envelope(), workspace);
  expect(exact(wider({ write: ["link", join(root, "extra"), "."], network: true }))).toEqual(
    wider({ write: [join(root, "extra")], network: true }),
  );
  expect(exact(wider({ write: [workspace, "sub/.."] }))).toBeUndefined();
  expect(exact({ kind: "outside" })).toEqual({ kind: "outside" });
  expect(
    exactRequest({ kind: "outside" }, folders.envelope("on-request", "danger-full-access"), workspace),
  ).toBeUndefined();
});

test("what lies beside the read roots can be asked for, where there is somebody to ask", async () => {
  await using folders = await openFolders();
  const { root, workspace } = folders;
  const limited = (approval: ApprovalPolicy): Envelope => ({ ...folders.envelope(approval), readRoots: ["/usr"] });
  const exact = (read: readonly string[], approval: ApprovalPolicy = "on-request") =>
    exactRequest(wider({ read: [...read] }), limited(approval), workspace);
  expect(exact(["link", "/usr/bin", "."])).toEqual(
    wider({ read: [join(root, "extra"), realpathSync("/usr/bin"), workspace] }),
  );
  expect(exact(["/usr/bin", "."])).toBeUndefined();
  expect(() => exact(["../home"])).toThrow("is not available here");
  for (const name of ["extra", "missing"]) {
    expect(() => exact([join(root, name)], "never")).toThrow(`${join(root, name)} is not available here`);
  }
  const request = wider({ read: [join(root, "extra")] });
  const widened = widenEnvelope(limited("on-request"), request);
  expect(widened).toEqual({ ...limited("on-request"), readRoots: ["/usr", join(root, "extra")] });
  expect(withinCeiling(widened, limited("on-request"))).toBe(`reading ${join(root, "extra")}`);
  expect(widenEnvelope(limited("on-request"), { kind: "outside" }).readRoots).toBeUndefined();
  expect(foldersBeyond(join(root, "extra/new"), limited("on-request"), { mayAsk: true })).toEqual([
    join(root, "extra"),
  ]);
  expect(() => foldersBeyond(join(root, "extra/new"), limited("never"), { mayAsk: true })).toThrow(
    "outside the folders",
  );
});

test.each([
  ["what is masked", "../home", "path.outside"],
  ["what is masked, by a link", "door", "path.outside"],
  ["a folder of the kernel", "/proc/self", "path.invalid"],
  ["what does not exist", "../nothing", "path.invalid"],
  ["a file", "../file.txt", "path.invalid"],
  ["a home by its short name", "~/x", "path.invalid"],
])("nobody is asked for %s", async (_what, path, code) => {
  await using folders = await openFolders();
  const request = (): unknown => exactRequest(wider({ write: [path] }), folders.envelope(), folders.workspace);
  expect(request).toThrow(expect.objectContaining({ code }));
});

test("a file beyond the folders that may be written is a request for its folder, where somebody can be asked", async () => {
  await using folders = await openFolders();
  const { root, workspace } = folders;
  const beyond = (path: string, approval: ApprovalPolicy = "on-request", mayAsk = true) =>
    foldersBeyond(path, folders.envelope(approval), { mayAsk });
  expect(beyond(join(workspace, "a/b.txt"))).toEqual([]);
  expect(beyond(join(root, "extra/new/deep/b.txt"))).toEqual([join(root, "extra")]);
  const outside = expect.objectContaining({ code: "path.outside" });
  expect(() => beyond(join(root, "extra/b.txt"), "never")).toThrow(outside);
  expect(() => beyond(join(root, "extra/b.txt"), "on-request", false)).toThrow(outside);
  expect(() => beyond(join(root, "home/b.txt"))).toThrow(outside);
  expect(() => beyond(join(root, "extra/.git/config"))).toThrow(expect.objectContaining({ code: "path.protected" }));
});

test("only what was asked for can be granted", () => {
  const request = wider({ write: ["/a", "/b"], network: true });
  expect(grantedRequest(request, undefined)).toEqual(request);
  const granted = { read: [], write: ["/b", "/c"], network: false };
  expect(grantedRequest(request, granted)).toEqual(wider({ write: ["/b"] }));
});

test("a wider envelope keeps its tools, and is measured against the ceiling", async () => {
  await using folders = await openFolders();
  const { root } = folders;
  const envelope = folders.envelope();
  const ceiling = folders.envelope("on-request", "workspace-write");
  const full = folders.envelope("on-request", "danger-full-access");
  const out = widenEnvelope(envelope, { kind: "outside" });
  expect(out).toMatchObject({ id: "full", tools: envelope.tools, writeRoots: ["/"], network: "all", sandbox: "off" });
  expect(withinCeiling(out, ceiling)).toBe("running outside the sandbox");
  expect(withinCeiling(widenEnvelope(envelope, wider({ network: true })), ceiling)).toBe("the network");
  const far = widenEnvelope(envelope, wider({ write: [join(root, "extra")] }));
  expect(far).toMatchObject({ id: "edit", sandbox: "required", network: "none" });
  expect(withinCeiling(far, ceiling)).toBe(`writing to ${join(root, "extra")}`);
  for (const wide of [out, far]) expect(withinCeiling(wide, full)).toBeUndefined();
  expect(withinCeiling(envelope, ceiling)).toBeUndefined();
});

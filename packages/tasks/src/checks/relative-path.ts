/** Paths in specs: relative to the workspace, and never out of it. */
import { posix } from "node:path";
import { HeddleError } from "@heddle/protocol";

/** In its shortest form. `path.invalid`: it is absolute, leads out, or has control characters. */
export function relativePath(path: string): string {
  const refuse = (why: string): HeddleError =>
    new HeddleError("path.invalid", `${JSON.stringify(path.slice(0, 200))} cannot be the path of a check: ${why}`);
  if (path === "") throw refuse("it is empty");
  // oxlint-disable-next-line no-control-regex -- these are the characters that are refused
  if (/[\u0000-\u001f\u007f]/.test(path)) throw refuse("it has control characters");
  if (!path.isWellFormed()) throw refuse("it is not valid Unicode");
  if (path.startsWith("/") || /^[a-z]:[\\/]/i.test(path)) throw refuse("it must be relative to the workspace");
  if (path.split("/").includes("..")) throw refuse("it must not lead out of the workspace");
  const normal = posix.normalize(path).replace(/\/$/, "");
  return normal === "." ? "" : normal;
}

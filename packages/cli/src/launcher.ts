/**
 * When an older Node started this process, a descriptor leads back to that launcher. It closes when the launcher is
 * killed; then this process ends itself as if asked to, so that no run continues unattended.
 */
import type { Socket } from "node:net";

export async function watchLauncher(env: NodeJS.ProcessEnv): Promise<void> {
  const fd = Number(env["HEDDLE_LAUNCHER_FD"]);
  delete env["HEDDLE_LAUNCHER_FD"];
  delete env["HEDDLE_LAUNCHED"];
  if (!Number.isInteger(fd) || fd < 3) return;
  // Loaded only here: a run that needs no line does not pay for it.
  const net = await import("node:net");
  let line: Socket;
  try {
    line = new net.Socket({ fd, readable: true, writable: false });
  } catch {
    // The variable came from somewhere else than a launcher: there is no line to watch.
    return;
  }
  const end = (): void => {
    process.kill(process.pid, "SIGTERM");
  };
  line.on("end", end).on("error", end).resume().unref();
}

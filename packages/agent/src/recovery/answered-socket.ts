/** Whether a process still holds a socket of the file system. */
import { connect } from "node:net";

/** A stopped process still has its socket, and the kernel takes connections for it. */
export function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (isAlive: boolean): void => {
      socket.destroy();
      resolve(isAlive);
    };
    // Only a refusal proves that the owner has ended; a full queue of a stopped owner does not.
    const onError = (error: NodeJS.ErrnoException): void =>
      settle(error.code !== "ECONNREFUSED" && error.code !== "ENOENT");
    socket.once("connect", () => settle(true)).once("error", onError);
  });
}

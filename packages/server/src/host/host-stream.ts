/** The stream of what clients do in no thread. It is its owner's alone: whoever follows the events of threads does not see it. */
export const HOST_STREAM = "host";

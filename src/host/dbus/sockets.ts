/** The socket for calls to the host's systemd. Pure. */

export type BusSockets = {
  /** Of the system bus. */
  readonly bus: string
  /** systemd's own, for root. It needs no bus: systemd speaks D-Bus directly to its clients. */
  readonly systemd: string
}

/** Paths in a host's file system, below its root or its mount point. */
export const hostSockets = (root = ''): BusSockets => ({
  bus: `${root}/run/dbus/system_bus_socket`,
  systemd: `${root}/run/systemd/private`,
})

/**
 * The bus where there is one, even if it does not answer: systemd cannot replace named services such as logind.
 * `exists` says whether a path is there. Decided at each connect: a package may install a bus.
 */
export function chooseSocket(
  { bus, systemd }: BusSockets,
  exists: (path: string) => boolean,
): { readonly path: string; readonly isPeer: boolean } {
  const isPeer = !exists(bus) && exists(systemd)
  return { path: isPeer ? systemd : bus, isPeer }
}

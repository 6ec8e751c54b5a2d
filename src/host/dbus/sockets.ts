/** Where the host's systemd is spoken to. Pure. */

export type BusSockets = {
  /** Of the system bus. */
  readonly bus: string
  /** systemd's own, for root, which needs no bus: it speaks D-Bus there to whoever connects. */
  readonly systemd: string
}

/** As they are in a host's file system, from its root or from where it is mounted. */
export const hostSockets = (root = ''): BusSockets => ({
  bus: `${root}/run/dbus/system_bus_socket`,
  systemd: `${root}/run/systemd/private`,
})

/**
 * The bus where there is one, even one that does not answer: what it is asked for by name, such as logind, systemd
 * cannot stand in for. `exists` says whether a path is there. Decided at each connect: a package may install a bus.
 */
export function chooseSocket(
  { bus, systemd }: BusSockets,
  exists: (path: string) => boolean,
): { readonly path: string; readonly isPeer: boolean } {
  const isPeer = !exists(bus) && exists(systemd)
  return { path: isPeer ? systemd : bus, isPeer }
}

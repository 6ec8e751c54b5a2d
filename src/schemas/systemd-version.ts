/** The number in a version of systemd such as `252.39-1~deb12u2`; undefined where there is none. */
export function systemdVersionNumber(version: string): number | undefined {
  const digits = /\d+/.exec(version)?.[0]
  return digits === undefined ? undefined : Number(digits)
}

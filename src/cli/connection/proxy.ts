/**
 * The proxy for a server from the environment, as in kubectl: HTTPS_PROXY or HTTP_PROXY by the server's scheme, in
 * upper or lower case, unless NO_PROXY names the host. Loopback addresses need no proxy.
 */
export function proxyOfEnvironment(
  server: string,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const url = new URL(server)
  const read = (name: string): string => environment[name] || environment[name.toLowerCase()] || ''
  const proxy = url.protocol === 'http:' ? read('HTTP_PROXY') : read('HTTPS_PROXY')
  if (proxy === '' || isLoopback(url.hostname) || isExcluded(url, read('NO_PROXY'))) return undefined
  return proxy.includes('://') ? proxy : `http://${proxy}`
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)

function isExcluded({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const actualPort = port || (protocol === 'http:' ? '80' : '443')
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true
      if (entry.includes('/')) return isInNetwork(host, entry)
      const [, name = entry, entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
      if (entryPort !== undefined && entryPort !== actualPort) return false
      const suffix = name.replace(/^\*?\./, '')
      return host === suffix || host.endsWith(`.${suffix}`)
    })
}

/** Whether an IPv4 address is in a network such as `10.0.0.0/8`. */
function isInNetwork(host: string, network: string): boolean {
  const [base = '', bits = ''] = network.split('/')
  const [address, start] = [host, base].map(numberOf)
  const length = Number(bits)
  if (address === undefined || start === undefined || !(length >= 0 && length <= 32)) return false
  const size = 2 ** (32 - length)
  return Math.floor(address / size) === Math.floor(start / size)
}

function numberOf(text: string): number | undefined {
  const parts = text.split('.').map(Number)
  if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part <= 255))) return undefined
  return parts.reduce((sum, part) => sum * 256 + part, 0)
}

/**
 * Who may talk to the dashboard. It listens on loopback, where every program and every web page of this machine can
 * knock: a page may resolve a name of its own to 127.0.0.1 (so the Host is checked), or send requests from elsewhere
 * (so the Origin is). A link with a token works once and turns into a cookie that scripts cannot read.
 *
 * Browsers send the cookies of a host to all its ports, and another user of this machine may serve one. So everything
 * is in a folder whose name only the link says: a cookie of the folder goes to no page that is not in it.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { timingSafeEqual } from 'node:crypto'
import type { Random } from '../../schemas/clock.ts'

export type AccessRequest = {
  readonly method: string
  /** As the browser asked for it. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
}

export type Verdict =
  /** `path`: within the folder, beginning with a slash. */
  | { readonly verdict: 'allowed'; readonly path: string; readonly setCookie?: string }
  | { readonly verdict: 'refused'; readonly status: number; readonly message: string }

export type Access = {
  /** Path and query of the link that the person opens. */
  readonly link: string
  judge(request: AccessRequest, port: number): Verdict
}

/** Read-only; a plan is computed from what the page sends, and changes nothing. */
const allowedMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST'])
const secretBytes = 32
const folderBytes = 16

export function createAccess(random: Random): Access {
  const token = random.hex(secretBytes)
  const session = random.hex(secretBytes)
  const folder = `/${random.hex(folderBytes)}`
  let isUsed = false

  function judge({ method, path, query, headers }: AccessRequest, port: number): Verdict {
    const refused = (status: number, message: string): Verdict => ({ verdict: 'refused', status, message })
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`]
    if (!hosts.includes(headers.host ?? '')) return refused(403, 'this Host is not the dashboard')
    if (!allowedMethods.has(method)) return refused(405, 'the dashboard is read-only')
    const { origin } = headers
    if (origin !== undefined && origin !== `http://${headers.host}`)
      return refused(403, 'pages of other origins may not use the dashboard')
    if (method === 'POST' && origin === undefined) return refused(403, 'a POST has to come from the dashboard itself')
    const inFolder = path.startsWith(`${folder}/`) ? path.slice(folder.length) : undefined
    const given = query.get('token')
    if (inFolder === '/' && method === 'GET' && given !== null) {
      if (isUsed || !isSame(given, token))
        return refused(
          401,
          'this link has been used, or is not of this dashboard: start kubectl skyhook dashboard again',
        )
      isUsed = true
      const setCookie = `${cookieName(port)}=${session}; HttpOnly; SameSite=Strict; Path=${folder}/`
      return { verdict: 'allowed', path: inFolder, setCookie }
    }
    const site = headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return refused(403, 'pages of other origins may not use the dashboard')
    if (inFolder === undefined || !isSame(cookieOf(headers.cookie, port) ?? '', session))
      return refused(401, 'open the link that kubectl skyhook dashboard has printed')
    return { verdict: 'allowed', path: inFolder }
  }

  return { link: `${folder}/?token=${token}`, judge }
}

const cookieName = (port: number): string => `skyhook-dashboard-${port}`

function cookieOf(header: string | undefined, port: number): string | undefined {
  const start = `${cookieName(port)}=`
  const found = header?.split('; ').find((pair) => pair.startsWith(start))
  return found?.slice(start.length)
}

/** In a time that does not tell how much of it is right. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Of every response. Scripts and styles come from this server alone, and text never becomes markup. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

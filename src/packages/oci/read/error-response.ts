import { isObject, parseJson } from '../../../schemas/json.ts'
import { ImageError } from '../errors.ts'
import type { ImageErrorCode } from '../../../schemas/catalogue/reason-codes.ts'
import { type RegistryResponse, connectionError } from './http.ts'
import { parseRetryAfter } from './retry.ts'

const maxErrorBytes = 64 * 1024
const maxErrorTextChars = 300 // a reason on a Node is one sentence
/** For text of a host other than the registry of the request. */
const maxForeignTextChars = 120

/** Reads a body of limited size. @throws ImageError too-large, unreachable */
export async function readBody(response: RegistryResponse, limitBytes: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > limitBytes)
        throw new ImageError('too-large', `${response.url.host}: a response of more than ${limitBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw connectionError(error, response.url, signal)
  }
  return Buffer.concat(chunks)
}

/**
 * The error for a status of 400 or more, with the registry's own message. Consumes the body. A registry chooses its
 * token server and its redirects, and may name a host that only nodes can reach (`askedHost` is the registry of the
 * request). From the answer of another host, the Node shows only an error in the registries' format.
 */
export async function errorFromResponse(
  response: RegistryResponse,
  askedHost: string,
  signal: AbortSignal,
): Promise<ImageError> {
  const isAsked = response.url.host === askedHost
  const parse = isAsked ? parseErrorBody : parseForeignBody
  const bodyText = await readBody(response, maxErrorBytes, signal).then(parse, () => undefined) // the status remains
  const retryAfterMs = parseRetryAfter(response.headers)
  const phrase = isAsked ? (response.body.statusMessage ?? '') : ''
  const errorText = bodyText ?? `${response.status} ${phrase}`.trim()
  return new ImageError(codeOfStatus(response.status), `${response.url.host}: ${errorText}`, { retryAfterMs })
}

/**
 * The distribution specification's error list (`{errors: [{code, message, detail}]}`), or the start of any other text.
 */
function parseErrorBody(body: Buffer): string | undefined {
  const text = body.toString('utf8')
  const found = errorListIn(text, detailedEntry) ?? text.replace(/<[^>]*>/g, ' ')
  return lineOf(found, maxErrorTextChars)
}

const parseForeignBody = (body: Buffer): string | undefined =>
  lineOf(errorListIn(body.toString('utf8'), namedEntry) ?? '', maxForeignTextChars)

function lineOf(text: string, maxChars: number): string | undefined {
  const line = text.replace(/\s+/g, ' ').trim()
  return line === '' ? undefined : line.slice(0, maxChars)
}

/** In answers of Docker's token server the list has another name and is a string. */
function errorListIn(text: string, formatEntry: (entry: ErrorEntry) => string): string | undefined {
  const document = parseJson(text)
  const { errors, details } = isObject(document) ? document : {}
  const entries: readonly unknown[] = Array.isArray(errors) ? errors : []
  const listed = entries.map((entry) => (isObject(entry) ? formatEntry(entry) : '')).filter((entry) => entry !== '')
  return listed.length > 0 ? listed.join('; ') : typeof details === 'string' ? details : undefined
}

type ErrorEntry = { readonly code?: unknown; readonly message?: unknown; readonly detail?: unknown }

const namedEntry = ({ code, message }: ErrorEntry): string =>
  [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')

function detailedEntry(entry: ErrorEntry): string {
  const { detail } = entry
  const named = namedEntry(entry)
  if (detail === undefined || detail === null) return named
  const more = typeof detail === 'string' ? detail : JSON.stringify(detail)
  return more === '' || more === '{}' ? named : `${named} (${more})`
}

function codeOfStatus(status: number): ImageErrorCode {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'denied'
  if (status === 404) return 'not-found'
  if (status === 406 || status === 415) return 'unsupported'
  if (status === 413) return 'too-large'
  if (status === 429) return 'rate-limited'
  return status >= 500 || status === 408 ? 'unavailable' : 'bad-response'
}

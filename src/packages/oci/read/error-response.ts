import { ImageError, type ImageErrorCode } from '../errors.ts'
import { type RegistryResponse, connectionError } from './http.ts'
import { parseRetryAfter } from './retry.ts'

const maxErrorBytes = 64 * 1024
const maxErrorTextChars = 300 // a reason on a Node is one sentence, not a page

/** Reads a body that must be small. @throws ImageError too-large, unreachable */
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

/** The error for a status of 400 or more, with the registry's own message. Consumes the body. */
export async function errorFromResponse(response: RegistryResponse, signal: AbortSignal): Promise<ImageError> {
  // the status remains
  const bodyText = await readBody(response, maxErrorBytes, signal).then(parseErrorBody, () => undefined)
  const retryAfterMs = parseRetryAfter(response.headers)
  const errorText = bodyText ?? `${response.status} ${response.body.statusMessage ?? ''}`.trim()
  return new ImageError(codeOfStatus(response.status), `${response.url.host}: ${errorText}`, { retryAfterMs })
}

/**
 * The distribution specification's error list (`{errors: [{code, message, detail}]}`), or the start of any
 * text there is.
 */
function parseErrorBody(body: Buffer): string | undefined {
  const text = body.toString('utf8')
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    document = undefined
  }
  const { errors, details } = (typeof document === 'object' && document !== null ? document : {}) as {
    errors?: unknown
    details?: unknown
  }
  const listed = Array.isArray(errors) ? errors.map(formatErrorEntry).filter((errorText) => errorText !== '') : []
  const found =
    listed.length > 0 ? listed.join('; ') : typeof details === 'string' ? details : text.replace(/<[^>]*>/g, ' ')
  const line = found.replace(/\s+/g, ' ').trim()
  return line === '' ? undefined : line.slice(0, maxErrorTextChars)
}

function formatErrorEntry(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { code, message, detail } = error as { code?: unknown; message?: unknown; detail?: unknown }
  const named = [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
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

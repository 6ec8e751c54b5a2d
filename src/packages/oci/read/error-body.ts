import { ImageError, type ImageErrorCode } from '../errors.ts'
import { type Answer, connectionError } from './http.ts'
import { parseRetryAfter } from './retry.ts'

const MAX_ERROR_BYTES = 64 * 1024
const MAX_WORDS_CHARS = 300 // a reason on a Node is one sentence, not a page

/** Reads a body that must be small. @throws ImageError too-large, unreachable */
export async function readBody(answer: Answer, limitBytes: number, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  try {
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length
      if (sizeBytes > limitBytes) throw new ImageError('too-large', `${answer.url.host}: an answer of more than ${limitBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw connectionError(error, answer.url, signal)
  }
  return Buffer.concat(chunks)
}

/** The error that a status of 400 or more stands for, in the registry's own words. Consumes the body. */
export async function errorOf(answer: Answer, signal: AbortSignal): Promise<ImageError> {
  const words = await readBody(answer, MAX_ERROR_BYTES, signal).then(wordsIn, () => undefined) // the status alone still tells
  const retryAfterMs = parseRetryAfter(answer.headers['retry-after'], Date.now())
  const said = words ?? `${answer.status} ${answer.body.statusMessage ?? ''}`.trim()
  return new ImageError(codeOf(answer.status), `${answer.url.host}: ${said}`, { retryAfterMs })
}

/** The distribution specification's error list (`{errors: [{code, message, detail}]}`), or the beginning of whatever text there is. */
function wordsIn(body: Buffer): string | undefined {
  const text = body.toString('utf8')
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    document = undefined
  }
  const { errors, details } = (typeof document === 'object' && document !== null ? document : {}) as { errors?: unknown; details?: unknown }
  const listed = Array.isArray(errors) ? errors.map(oneError).filter((said) => said !== '') : []
  const found = listed.length > 0 ? listed.join('; ') : typeof details === 'string' ? details : text.replace(/<[^>]*>/g, ' ')
  const line = found.replace(/\s+/g, ' ').trim()
  return line === '' ? undefined : line.slice(0, MAX_WORDS_CHARS)
}

function oneError(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  const { code, message, detail } = error as { code?: unknown; message?: unknown; detail?: unknown }
  const named = [code, message].filter((part) => typeof part === 'string' && part !== '').join(': ')
  if (detail === undefined || detail === null) return named
  const more = typeof detail === 'string' ? detail : JSON.stringify(detail)
  return more === '' || more === '{}' ? named : `${named} (${more})`
}

function codeOf(status: number): ImageErrorCode {
  if (status === 401) return 'unauthorized'
  if (status === 403) return 'denied'
  if (status === 404) return 'not-found'
  if (status === 406 || status === 415) return 'unsupported'
  if (status === 413) return 'too-large'
  if (status === 429) return 'rate-limited'
  return status >= 500 || status === 408 ? 'unavailable' : 'bad-answer'
}

import { clip, plainExcerpt } from '../../schemas/plain-text.ts'

/** The limit of an Event. */
const maxLength = 1_024
/** In the annotation of a Node, quotes included: a reason and those of packages have 6 KiB together. */
const maxJsonBytes = 1_536

/** Untrusted text as a part of a reason: bounded, and safe to print. */
export function reasonMessage(text: string): string {
  let message = plainExcerpt(text, maxLength)
  for (let length = message.length; Buffer.byteLength(JSON.stringify(message)) > maxJsonBytes; )
    message = clip(message, (length = Math.floor(length * 0.8)))
  return message
}

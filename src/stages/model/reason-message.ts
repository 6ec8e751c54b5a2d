import { clip, plainExcerpt } from '../../schemas/plain-text.ts'

/** As an Event has it. */
const maxLength = 1_024
/** In the annotation of a Node, quotes included: a reason and those of packages have 6 KiB together. */
const maxJsonBytes = 1_536

/** What others said, as it stands in a reason: bounded, and without effect where it is printed. */
export function reasonMessage(text: string): string {
  let message = plainExcerpt(text, maxLength)
  for (let length = message.length; Buffer.byteLength(JSON.stringify(message)) > maxJsonBytes; )
    message = clip(message, (length = Math.floor(length * 0.8)))
  return message
}

/** The functions under test: the product's own. A wrong rule replaces one of them. */
import { batchLimit, judgeBatch } from '../../../src/lease/policy/batch.ts'

export const productRules = {
  judge: judgeBatch,
  limit: batchLimit,
  comparesEpoch: true,
  /** A ledger of another policy, or of other work, admits nobody. */
  comparesCount: true,
  comparesVersion: true,
  keepsFinishedSlot: true,
  worksUnderFinishedSlot: false,
  keepsFailedSlot: true,
  /** Reads ledger and slots again before its first step. */
  confirms: true,
  /** The census takes ledger and slots from one LIST. */
  listsTogether: true,
  /** Results and epoch go out in one PUT. */
  writesTogether: true,
  /** Other work opens another batch beside a reset, too. */
  passesAtReset: true,
}

export type Rules = Readonly<typeof productRules>

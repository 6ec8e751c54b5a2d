/**
 * Which reasons and codes stall, and when. `make generate` writes the column *Stalls* of docs/usage/reasons.md from it.
 */
import { type ReasonCode, reasonCodes, type Stalls } from './reason-codes.ts'
import { type ReasonName, reasons } from './reasons.ts'

const bySection: Readonly<Record<'waiting' | 'failing' | 'blocked', Stalls>> = {
  waiting: 'never',
  failing: 'by-attempts',
  blocked: 'at-once',
}

/** Exceptions from the rule of their section. */
const byReason: Readonly<Partial<Record<ReasonName, Stalls>>> = {
  RebootPending: 'by-attempts', // the next attempt after a refusal
  ImagePull: 'never', // its code is more specific
  ReferenceMissing: 'after-two-minutes',
  InvalidPackage: 'after-two-minutes',
  RebootLoop: 'at-once',
  InternalError: 'after-ten-minutes',
  DeploymentPolicyNotFound: 'after-two-minutes',
  ApiRequestRefused: 'after-two-minutes',
  HostUnreachable: 'after-ten-minutes',
  HostUnusable: 'after-ten-minutes',
  CrashLoop: 'after-ten-minutes',
}

/**
 * A code is more specific than its reason. Reasons and codes of a newer agent that this one does not know never stall.
 */
export function stallsBy(reason: string, code?: ReasonCode): Stalls {
  if (code !== undefined) return reasonCodes[code].stalls
  return Object.hasOwn(reasons, reason) ? ofReason(reason as ReasonName) : 'never'
}

const ofReason = (name: ReasonName): Stalls => byReason[name] ?? bySection[reasons[name].section]

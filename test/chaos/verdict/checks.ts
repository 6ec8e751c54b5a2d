import { budget } from '../../promises/budget.ts'
import { onRecord } from '../../promises/recorded.ts'
import { judgeBoots } from './boots.ts'
import { judgeCordons } from './cordons.ts'
import type { Check } from './evidence.ts'
import { judgeEvictions, judgeProtectedPods } from './pods.ts'
import { judgeReady } from './ready-true.ts'
import { judgeRates } from './request-rates.ts'
import { judgeSilence } from './silence.ts'
import { judgeSlotsKept } from './slots-kept.ts'
import { judgeSlotsTrue } from './slots-true.ts'
import { judgeStepsOnce } from './steps-once.ts'

export const checks: readonly Check[] = [
  { name: 'no node is admitted above the budget', judge: onRecord(budget) },
  { name: 'a node gives its slot back only after the uncordon and its work', judge: judgeSlotsKept },
  { name: 'slots say within a minute which nodes are out', judge: judgeSlotsTrue },
  { name: "an administrator's cordon stays, and no other", judge: judgeCordons },
  { name: 'pods are evicted, never deleted', judge: judgeEvictions },
  { name: 'no interrupt beside a protected pod', judge: judgeProtectedPods },
  { name: 'no step completes twice', judge: judgeStepsOnce },
  { name: 'a node is never silent for a minute', judge: judgeSilence },
  { name: 'requests per agent and minute stay few', judge: judgeRates },
  { name: 'a Skyhook is Ready only when its nodes are complete', judge: judgeReady },
  { name: 'a host reboots only with a slot', judge: judgeBoots },
]

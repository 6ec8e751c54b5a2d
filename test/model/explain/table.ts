/** All situations of the table, by group, and the causes that it leaves to real hosts. */
import type { Cause } from '../../../src/cli/reason/explain/finding.ts'
import { agentRows } from './agent-rows.ts'
import type { BrokenScene } from './broken-scene.ts'
import { hostRows } from './host-rows.ts'
import { nodeRows, settingRows } from './node-rows.ts'
import { imageRows } from './image-rows.ts'
import { specRows, workRows } from './package-rows.ts'
import { severalRows } from './several-rows.ts'
import { podRows } from './pod-rows.ts'
import { slotRows } from './slot-rows.ts'

export const groups: Readonly<Record<string, readonly BrokenScene[]>> = {
  settings: settingRows,
  nodes: nodeRows,
  hosts: hostRows,
  agents: agentRows,
  images: imageRows,
  work: workRows,
  specs: specRows,
  slots: slotRows,
  pods: podRows,
  several: severalRows,
}

/** Why no row breaks them. */
export const withoutRow: Readonly<Partial<Record<Cause, string>>> = {
  preparing: 'a wait that ends by itself',
  'next-in-line': 'a wait that ends by itself',
  'other-skyhook': 'a wait that ends with the work of the other Skyhook, which has a cause of its own',
  'pods-ending': 'a wait that ends with the grace period of the pods',
  'bare-pod': 'a wait that ends with the grace period of the pod',
  'reboot-pending': 'a wait that ends with the reboot; a host that does not come back has a row',
  soaking: 'the node is complete',
  'control-plane': 'the other node of the control plane has a cause of its own; test/e2e/etcd-quorum.test.ts has it',
  'crash-loop': 'a defect of the agent, which simulated agents do not have; src/cli/doctor/broken-nodes.test.ts has it',
  'internal-error': 'a defect of the agent, whose remedy is a report',
}

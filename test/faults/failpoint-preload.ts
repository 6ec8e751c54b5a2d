/**
 * Loaded into every Node process of the agent's container before its program (`--require` in NODE_OPTIONS, see
 * install-failpoints.ts). Probes and the census have no failpoints: only the agent obeys commands.
 */
import { onFailpoint } from '../kit/on-failpoint.ts'
import { followCommands } from './failpoint-commands.ts'

const file = process.env['SKYHOOKD_FAILPOINT_ORDERS']
if (file !== undefined && process.argv[2] === 'agent')
  onFailpoint(followCommands(file, (signal) => process.kill(process.pid, signal)))

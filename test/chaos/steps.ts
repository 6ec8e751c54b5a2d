/** The scripts of the packages under chaos: each step writes when it begins and when it has succeeded. */
import type { Scripts } from '../kit/cluster/skyhooks.ts'
import { stepsPath } from '../kit/recorded/step-lines.ts'

export const serviceUnit = 'chaos-recorded'
/** Long enough to be met by faults, short enough for many rollouts. */
const stepSeconds = 0.4

const modes = ['apply', 'config', 'post_interrupt', 'uninstall'].flatMap((mode) => [mode, `${mode}_check`])

export function scriptsOf(skyhook: string, name: string, version: string, round: number): Scripts {
  const script = (mode: string): string => {
    const line = `$(date +%s.%N) ${skyhook} ${name} ${version} ${mode} ${round}`
    return `echo "${line} begins" >>${stepsPath}\nsleep ${stepSeconds}\necho "${line} ends" >>${stepsPath}\n`
  }
  return Object.fromEntries(modes.map((mode) => [mode, script(mode)]))
}

import { table } from '../demo/screen.ts'
import { medianOf } from './memory.ts'
import type { BenchContext } from './context.ts'

export type Figure = {
  readonly name: string
  readonly unit: string
  readonly target: number
  readonly measured: number
  /** All samples, or the parts of the figure. */
  readonly detail: string
  /** The Skyhook operator, on real kubelets in its best case. */
  readonly operator?: string
}

export type Measurement = { readonly title: string; readonly run: (bench: BenchContext) => Promise<Figure[]> }

/** The median of times in ms, with all samples beside it. */
export function medianFigure(
  name: string,
  samples: readonly number[],
  references: Pick<Figure, 'target' | 'operator'>,
): Figure {
  const detail = `median of ${samples.map((sample) => sample.toFixed(0)).join(' ')}`
  return { name, unit: 'ms', measured: medianOf(samples), detail, ...references }
}

export const meetsTarget = ({ measured, target }: Figure): boolean => measured <= target

/** The figures as a table for people, each beside its promise. */
export function reportOf(figures: readonly Figure[]): string {
  const heading = ['', 'FIGURE', 'MEASURED', 'PROMISE', 'OPERATOR', 'DETAIL']
  const rows = figures.map((figure) => {
    const { name, unit, measured, target, operator = '', detail } = figure
    return [
      meetsTarget(figure) ? 'ok' : 'MISSED',
      name,
      `${format(measured)} ${unit}`,
      `≤ ${format(target)} ${unit}`,
      operator,
      detail,
    ]
  })
  return table([heading, ...rows]).join('\n')
}

const format = (value: number): string => (Number.isInteger(value) ? String(value) : value.toFixed(1))

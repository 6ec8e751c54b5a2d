/** Panels of the Grafana dashboard, in the types of Grafana's own schema: the compiler is the check. */
import {
  BigValueColorMode,
  BigValueGraphMode,
  BigValueJustifyMode,
  BigValueTextMode,
  type DataQuery,
  type FieldColorSeriesByMode,
  FieldColorModeId,
  type FieldConfigSource,
  type GridPos,
  LineInterpolation,
  type Panel,
  PercentChangeColorMode,
  type RowPanel,
  SortOrder,
  StackingMode,
  ThresholdsMode,
  TooltipDisplayMode,
  VizOrientation,
} from '@grafana/schema'
import type * as Stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen'
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen'
import type {
  FieldConfig as TimeSeriesField,
  Options,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen'

export type TimeSeriesOptions = Options

/** Of Grafana, with the name of the dashboard's variable for the data source. */
export const prometheus = { type: 'prometheus', uid: '${datasource}' } as const

/** One query, and how the legend names its series. */
export type Query = { readonly expr: string; readonly legend: string }

export type PanelSpec = {
  readonly title: string
  /** What the panel shows, and what to look for in it. */
  readonly description: string
  readonly queries: readonly Query[]
  /** Default: lines over time. `stat`: the newest value as a number. `table`: the newest values with their labels. */
  readonly form?: Exclude<Form, 'lines'>
  /** Grafana's name of the unit; default: a plain number. */
  readonly unit?: 'percent' | 's' | 'reqps'
  /** The series add up to something. */
  readonly isStacked?: boolean
  /** From this value on a `stat` is red. */
  readonly redFrom?: number
  /** Headings of the columns of a `table`, by label; `Value` is that of the value. */
  readonly headings?: Readonly<Record<string, string>>
}

type Form = 'lines' | 'stat' | 'table'
type PrometheusQuery = DataQuery & {
  readonly expr: string
  readonly legendFormat: string
  readonly range: boolean
  readonly instant?: boolean
  readonly format?: 'table'
}

const columns = 24
const sizes: Readonly<Record<Form, Pick<GridPos, 'w' | 'h'>>> = {
  lines: { w: 8, h: 8 },
  stat: { w: 6, h: 4 },
  table: { w: columns, h: 8 },
}

/** A row of panels with its heading. Returns them with the line below. */
export function rowOf(
  title: string,
  specs: readonly PanelSpec[],
  { firstId, y }: { readonly firstId: number; readonly y: number },
): { readonly panels: readonly (Panel | RowPanel)[]; readonly nextId: number; readonly nextY: number } {
  const heading = {
    type: 'row',
    id: firstId,
    title,
    collapsed: false,
    gridPos: { x: 0, y, w: columns, h: 1 },
    panels: [],
  } satisfies RowPanel
  const panels: Panel[] = []
  let [x, top, nextY] = [0, y + 1, y + 1]
  for (const [index, spec] of specs.entries()) {
    const { w, h } = sizes[spec.form ?? 'lines']
    if (x + w > columns) [x, top] = [0, nextY]
    panels.push(panelOf(spec, firstId + 1 + index, { x, y: top, w, h }))
    x += w
    nextY = Math.max(nextY, top + h)
  }
  return { panels: [heading, ...panels], nextId: firstId + 1 + specs.length, nextY }
}

function panelOf(spec: PanelSpec, id: number, gridPos: GridPos): Panel {
  const { title, description, queries, form = 'lines' } = spec
  return {
    id,
    title,
    description,
    datasource: prometheus,
    gridPos,
    ...forms[form](spec),
    targets: queries.map(
      ({ expr, legend }, index) =>
        ({
          refId: String.fromCharCode(65 + index),
          datasource: prometheus,
          expr,
          legendFormat: legend,
          range: form !== 'table',
          ...(form === 'table' && { instant: true, format: 'table' as const }),
        }) satisfies PrometheusQuery,
    ),
  }
}

const forms: Readonly<
  Record<Form, (spec: PanelSpec) => Pick<Panel, 'type' | 'fieldConfig' | 'options' | 'transformations'>>
> = {
  lines: ({ unit, isStacked = false }) => ({
    type: 'timeseries',
    fieldConfig: {
      defaults: {
        min: 0,
        ...(unit === 'percent' && { max: 100 }),
        unit: unit ?? 'short',
        color: { mode: FieldColorModeId.PaletteClassicByName, seriesBy: 'last' satisfies FieldColorSeriesByMode },
        custom: {
          lineInterpolation: LineInterpolation.StepAfter,
          fillOpacity: isStacked ? 40 : 0,
          stacking: { mode: isStacked ? StackingMode.Normal : StackingMode.None },
        } satisfies TimeSeriesField,
      },
      overrides: [],
    } satisfies FieldConfigSource<TimeSeriesField>,
    options: {
      legend: { showLegend: true, placement: 'bottom', calcs: [] },
      tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
    } satisfies TimeSeriesOptions,
  }),
  stat: ({ unit, redFrom }) => ({
    type: 'stat',
    fieldConfig: {
      defaults: {
        unit: unit ?? 'short',
        color: { mode: FieldColorModeId.Thresholds },
        thresholds: {
          mode: ThresholdsMode.Absolute,
          steps: [{ value: null, color: 'text' }, ...(redFrom === undefined ? [] : [{ value: redFrom, color: 'red' }])],
        },
      },
      overrides: [],
    } satisfies FieldConfigSource,
    options: {
      reduceOptions: { calcs: ['lastNotNull'] },
      orientation: VizOrientation.Auto,
      colorMode: BigValueColorMode.Value,
      graphMode: BigValueGraphMode.None,
      justifyMode: BigValueJustifyMode.Auto,
      textMode: BigValueTextMode.Auto,
      percentChangeColorMode: PercentChangeColorMode.Standard,
      showPercentChange: false,
      wideLayout: true,
    } satisfies Stat.Options,
  }),
  table: ({ headings = {} }) => ({
    type: 'table',
    fieldConfig: { defaults: {}, overrides: [] } satisfies FieldConfigSource,
    options: {
      frameIndex: 0,
      showHeader: true,
      sortBy: [{ displayName: headings['Value'] ?? 'Value', desc: true }],
    } satisfies Table.Options,
    transformations: [{ id: 'organize', options: { excludeByName: { Time: true }, renameByName: headings } }],
  }),
}

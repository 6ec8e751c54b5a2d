// Generated from package-config.v1.schema.json by make generate; edit the schema, not this file.
// @ts-nocheck
import type { Validate } from '../validation.ts'

export const validatePackageConfig: Validate = validate20;
const schema31 = {"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"package-config.v1.schema.json","title":"config.json of a package, version v1","description":"an object: what the package is called and which scripts of skyhook_dir/ run in which mode","type":"object","required":["schema_version","package_name","package_version","expected_config_files","modes"],"properties":{"schema_version":{"description":"\"v1\"","const":"v1"},"package_name":{"description":"one path segment of at most 200 characters without control characters: flags, history and logs are filed under it","type":"string","pattern":"^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f]{1,200}$"},"package_version":{"description":"a semantic version (1.2.3, 1.2.3-rc.1, 1.2.3+build; no leading zeros)","type":"string","pattern":"^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$"},"expected_config_files":{"description":"a list of names that configMap must have","type":"array","items":{"$ref":"#/$defs/relativePath"}},"modes":{"description":"an object of step lists by mode","type":"object","properties":{"apply":{"$ref":"#/$defs/steps"},"apply-check":{"$ref":"#/$defs/steps"},"config":{"$ref":"#/$defs/steps"},"config-check":{"$ref":"#/$defs/steps"},"upgrade":{"$ref":"#/$defs/steps"},"upgrade-check":{"$ref":"#/$defs/steps"},"uninstall":{"$ref":"#/$defs/steps"},"uninstall-check":{"$ref":"#/$defs/steps"},"post-interrupt":{"$ref":"#/$defs/steps"},"post-interrupt-check":{"$ref":"#/$defs/steps"},"interrupt":{"description":"a list; its content is never run","type":"array"}},"additionalProperties":false}},"$defs":{"relativePath":{"description":"a relative path without `..`, control characters or an empty last segment","type":"string","pattern":"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"},"steps":{"description":"a list of steps","type":"array","items":{"$ref":"#/$defs/step"}},"step":{"description":"an object: one script with its arguments","type":"object","required":["name","path","arguments","returncodes","on_host","idempotence","upgrade_step"],"properties":{"name":{"description":"letters, digits, `_`, `-` and `.` only","type":"string","pattern":"^[a-zA-Z0-9_\\-.]+$"},"path":{"$ref":"#/$defs/relativePath"},"arguments":{"description":"a list of strings","type":"array","items":{"description":"a string","type":"string"}},"returncodes":{"description":"a list of at least one exit code","type":"array","minItems":1,"items":{"description":"an integer","type":"integer"}},"on_host":{"description":"true or false; without effect, steps always run on the host","type":"boolean"},"env":{"description":"an object of strings by variable name","type":"object","additionalProperties":{"description":"a string","type":"string"}},"idempotence":{"description":"true (the step may always run again) or false (the agent runs it once)","type":"boolean"},"upgrade_step":{"description":"true (the step gets the previous and the current version as arguments) or false","type":"boolean"},"requires_interrupt":{"description":"accepted for old packages, without effect"}},"additionalProperties":false}}};
const schema32 = {"description":"a relative path without `..`, control characters or an empty last segment","type":"string","pattern":"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"};
const pattern4 = new RegExp("^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f]{1,200}$", "u");
const pattern5 = new RegExp("^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$", "u");
const pattern6 = new RegExp("^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$", "u");
const func1 = Object.prototype.hasOwnProperty;
const schema33 = {"description":"a list of steps","type":"array","items":{"$ref":"#/$defs/step"}};
const schema34 = {"description":"an object: one script with its arguments","type":"object","required":["name","path","arguments","returncodes","on_host","idempotence","upgrade_step"],"properties":{"name":{"description":"letters, digits, `_`, `-` and `.` only","type":"string","pattern":"^[a-zA-Z0-9_\\-.]+$"},"path":{"$ref":"#/$defs/relativePath"},"arguments":{"description":"a list of strings","type":"array","items":{"description":"a string","type":"string"}},"returncodes":{"description":"a list of at least one exit code","type":"array","minItems":1,"items":{"description":"an integer","type":"integer"}},"on_host":{"description":"true or false; without effect, steps always run on the host","type":"boolean"},"env":{"description":"an object of strings by variable name","type":"object","additionalProperties":{"description":"a string","type":"string"}},"idempotence":{"description":"true (the step may always run again) or false (the agent runs it once)","type":"boolean"},"upgrade_step":{"description":"true (the step gets the previous and the current version as arguments) or false","type":"boolean"},"requires_interrupt":{"description":"accepted for old packages, without effect"}},"additionalProperties":false};
const pattern7 = new RegExp("^[a-zA-Z0-9_\\-.]+$", "u");

function validate22(data, {instancePath="", parentData, parentDataProperty, rootData=data, dynamicAnchors={}}={}){
let vErrors = null;
let errors = 0;
const evaluated0 = validate22.evaluated;
if(evaluated0.dynamicProps){
evaluated0.props = undefined;
}
if(evaluated0.dynamicItems){
evaluated0.items = undefined;
}
if(data && typeof data == "object" && !Array.isArray(data)){
if(data.name === undefined){
const err0 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "name"},message:"must have required property '"+"name"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err0];
}
else {
vErrors.push(err0);
}
errors++;
}
if(data.path === undefined){
const err1 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "path"},message:"must have required property '"+"path"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err1];
}
else {
vErrors.push(err1);
}
errors++;
}
if(data.arguments === undefined){
const err2 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "arguments"},message:"must have required property '"+"arguments"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err2];
}
else {
vErrors.push(err2);
}
errors++;
}
if(data.returncodes === undefined){
const err3 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "returncodes"},message:"must have required property '"+"returncodes"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err3];
}
else {
vErrors.push(err3);
}
errors++;
}
if(data.on_host === undefined){
const err4 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "on_host"},message:"must have required property '"+"on_host"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err4];
}
else {
vErrors.push(err4);
}
errors++;
}
if(data.idempotence === undefined){
const err5 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "idempotence"},message:"must have required property '"+"idempotence"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err5];
}
else {
vErrors.push(err5);
}
errors++;
}
if(data.upgrade_step === undefined){
const err6 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "upgrade_step"},message:"must have required property '"+"upgrade_step"+"'",schema:schema34.required,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err6];
}
else {
vErrors.push(err6);
}
errors++;
}
for(const key0 in data){
if(!(func1.call(schema34.properties, key0))){
const err7 = {instancePath,schemaPath:"#/additionalProperties",keyword:"additionalProperties",params:{additionalProperty: key0},message:"must NOT have additional properties",schema:false,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err7];
}
else {
vErrors.push(err7);
}
errors++;
}
}
if(data.name !== undefined){
let data0 = data.name;
if(typeof data0 === "string"){
if(!pattern7.test(data0)){
const err8 = {instancePath:instancePath+"/name",schemaPath:"#/properties/name/pattern",keyword:"pattern",params:{pattern: "^[a-zA-Z0-9_\\-.]+$"},message:"must match pattern \""+"^[a-zA-Z0-9_\\-.]+$"+"\"",schema:"^[a-zA-Z0-9_\\-.]+$",parentSchema:schema34.properties.name,data:data0};
if(vErrors === null){
vErrors = [err8];
}
else {
vErrors.push(err8);
}
errors++;
}
}
else {
const err9 = {instancePath:instancePath+"/name",schemaPath:"#/properties/name/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema34.properties.name.type,parentSchema:schema34.properties.name,data:data0};
if(vErrors === null){
vErrors = [err9];
}
else {
vErrors.push(err9);
}
errors++;
}
}
if(data.path !== undefined){
let data1 = data.path;
if(typeof data1 === "string"){
if(!pattern6.test(data1)){
const err10 = {instancePath:instancePath+"/path",schemaPath:"#/$defs/relativePath/pattern",keyword:"pattern",params:{pattern: "^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"},message:"must match pattern \""+"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"+"\"",schema:"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$",parentSchema:schema32,data:data1};
if(vErrors === null){
vErrors = [err10];
}
else {
vErrors.push(err10);
}
errors++;
}
}
else {
const err11 = {instancePath:instancePath+"/path",schemaPath:"#/$defs/relativePath/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema32.type,parentSchema:schema32,data:data1};
if(vErrors === null){
vErrors = [err11];
}
else {
vErrors.push(err11);
}
errors++;
}
}
if(data.arguments !== undefined){
let data2 = data.arguments;
if(Array.isArray(data2)){
const len0 = data2.length;
for(let i0=0; i0<len0; i0++){
let data3 = data2[i0];
if(typeof data3 !== "string"){
const err12 = {instancePath:instancePath+"/arguments/" + i0,schemaPath:"#/properties/arguments/items/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema34.properties.arguments.items.type,parentSchema:schema34.properties.arguments.items,data:data3};
if(vErrors === null){
vErrors = [err12];
}
else {
vErrors.push(err12);
}
errors++;
}
}
}
else {
const err13 = {instancePath:instancePath+"/arguments",schemaPath:"#/properties/arguments/type",keyword:"type",params:{type: "array"},message:"must be array",schema:schema34.properties.arguments.type,parentSchema:schema34.properties.arguments,data:data2};
if(vErrors === null){
vErrors = [err13];
}
else {
vErrors.push(err13);
}
errors++;
}
}
if(data.returncodes !== undefined){
let data4 = data.returncodes;
if(Array.isArray(data4)){
if(data4.length < 1){
const err14 = {instancePath:instancePath+"/returncodes",schemaPath:"#/properties/returncodes/minItems",keyword:"minItems",params:{limit: 1},message:"must NOT have fewer than 1 items",schema:1,parentSchema:schema34.properties.returncodes,data:data4};
if(vErrors === null){
vErrors = [err14];
}
else {
vErrors.push(err14);
}
errors++;
}
const len1 = data4.length;
for(let i1=0; i1<len1; i1++){
let data5 = data4[i1];
if(!(((typeof data5 == "number") && (!(data5 % 1) && !isNaN(data5))) && (isFinite(data5)))){
const err15 = {instancePath:instancePath+"/returncodes/" + i1,schemaPath:"#/properties/returncodes/items/type",keyword:"type",params:{type: "integer"},message:"must be integer",schema:schema34.properties.returncodes.items.type,parentSchema:schema34.properties.returncodes.items,data:data5};
if(vErrors === null){
vErrors = [err15];
}
else {
vErrors.push(err15);
}
errors++;
}
}
}
else {
const err16 = {instancePath:instancePath+"/returncodes",schemaPath:"#/properties/returncodes/type",keyword:"type",params:{type: "array"},message:"must be array",schema:schema34.properties.returncodes.type,parentSchema:schema34.properties.returncodes,data:data4};
if(vErrors === null){
vErrors = [err16];
}
else {
vErrors.push(err16);
}
errors++;
}
}
if(data.on_host !== undefined){
let data6 = data.on_host;
if(typeof data6 !== "boolean"){
const err17 = {instancePath:instancePath+"/on_host",schemaPath:"#/properties/on_host/type",keyword:"type",params:{type: "boolean"},message:"must be boolean",schema:schema34.properties.on_host.type,parentSchema:schema34.properties.on_host,data:data6};
if(vErrors === null){
vErrors = [err17];
}
else {
vErrors.push(err17);
}
errors++;
}
}
if(data.env !== undefined){
let data7 = data.env;
if(data7 && typeof data7 == "object" && !Array.isArray(data7)){
for(const key1 in data7){
let data8 = data7[key1];
if(typeof data8 !== "string"){
const err18 = {instancePath:instancePath+"/env/" + key1.replace(/~/g, "~0").replace(/\//g, "~1"),schemaPath:"#/properties/env/additionalProperties/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema34.properties.env.additionalProperties.type,parentSchema:schema34.properties.env.additionalProperties,data:data8};
if(vErrors === null){
vErrors = [err18];
}
else {
vErrors.push(err18);
}
errors++;
}
}
}
else {
const err19 = {instancePath:instancePath+"/env",schemaPath:"#/properties/env/type",keyword:"type",params:{type: "object"},message:"must be object",schema:schema34.properties.env.type,parentSchema:schema34.properties.env,data:data7};
if(vErrors === null){
vErrors = [err19];
}
else {
vErrors.push(err19);
}
errors++;
}
}
if(data.idempotence !== undefined){
let data9 = data.idempotence;
if(typeof data9 !== "boolean"){
const err20 = {instancePath:instancePath+"/idempotence",schemaPath:"#/properties/idempotence/type",keyword:"type",params:{type: "boolean"},message:"must be boolean",schema:schema34.properties.idempotence.type,parentSchema:schema34.properties.idempotence,data:data9};
if(vErrors === null){
vErrors = [err20];
}
else {
vErrors.push(err20);
}
errors++;
}
}
if(data.upgrade_step !== undefined){
let data10 = data.upgrade_step;
if(typeof data10 !== "boolean"){
const err21 = {instancePath:instancePath+"/upgrade_step",schemaPath:"#/properties/upgrade_step/type",keyword:"type",params:{type: "boolean"},message:"must be boolean",schema:schema34.properties.upgrade_step.type,parentSchema:schema34.properties.upgrade_step,data:data10};
if(vErrors === null){
vErrors = [err21];
}
else {
vErrors.push(err21);
}
errors++;
}
}
}
else {
const err22 = {instancePath,schemaPath:"#/type",keyword:"type",params:{type: "object"},message:"must be object",schema:schema34.type,parentSchema:schema34,data};
if(vErrors === null){
vErrors = [err22];
}
else {
vErrors.push(err22);
}
errors++;
}
validate22.errors = vErrors;
return errors === 0;
}
validate22.evaluated = {"props":true,"dynamicProps":false,"dynamicItems":false};


function validate21(data, {instancePath="", parentData, parentDataProperty, rootData=data, dynamicAnchors={}}={}){
let vErrors = null;
let errors = 0;
const evaluated0 = validate21.evaluated;
if(evaluated0.dynamicProps){
evaluated0.props = undefined;
}
if(evaluated0.dynamicItems){
evaluated0.items = undefined;
}
if(Array.isArray(data)){
const len0 = data.length;
for(let i0=0; i0<len0; i0++){
if(!(validate22(data[i0], {instancePath:instancePath+"/" + i0,parentData:data,parentDataProperty:i0,rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate22.errors : vErrors.concat(validate22.errors);
errors = vErrors.length;
}
}
}
else {
const err0 = {instancePath,schemaPath:"#/type",keyword:"type",params:{type: "array"},message:"must be array",schema:schema33.type,parentSchema:schema33,data};
if(vErrors === null){
vErrors = [err0];
}
else {
vErrors.push(err0);
}
errors++;
}
validate21.errors = vErrors;
return errors === 0;
}
validate21.evaluated = {"items":true,"dynamicProps":false,"dynamicItems":false};


function validate20(data, {instancePath="", parentData, parentDataProperty, rootData=data, dynamicAnchors={}}={}){
/*# sourceURL="package-config.v1.schema.json" */;
let vErrors = null;
let errors = 0;
const evaluated0 = validate20.evaluated;
if(evaluated0.dynamicProps){
evaluated0.props = undefined;
}
if(evaluated0.dynamicItems){
evaluated0.items = undefined;
}
if(data && typeof data == "object" && !Array.isArray(data)){
if(data.schema_version === undefined){
const err0 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "schema_version"},message:"must have required property '"+"schema_version"+"'",schema:schema31.required,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err0];
}
else {
vErrors.push(err0);
}
errors++;
}
if(data.package_name === undefined){
const err1 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "package_name"},message:"must have required property '"+"package_name"+"'",schema:schema31.required,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err1];
}
else {
vErrors.push(err1);
}
errors++;
}
if(data.package_version === undefined){
const err2 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "package_version"},message:"must have required property '"+"package_version"+"'",schema:schema31.required,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err2];
}
else {
vErrors.push(err2);
}
errors++;
}
if(data.expected_config_files === undefined){
const err3 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "expected_config_files"},message:"must have required property '"+"expected_config_files"+"'",schema:schema31.required,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err3];
}
else {
vErrors.push(err3);
}
errors++;
}
if(data.modes === undefined){
const err4 = {instancePath,schemaPath:"#/required",keyword:"required",params:{missingProperty: "modes"},message:"must have required property '"+"modes"+"'",schema:schema31.required,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err4];
}
else {
vErrors.push(err4);
}
errors++;
}
if(data.schema_version !== undefined){
let data0 = data.schema_version;
if("v1" !== data0){
const err5 = {instancePath:instancePath+"/schema_version",schemaPath:"#/properties/schema_version/const",keyword:"const",params:{allowedValue: "v1"},message:"must be equal to constant",schema:"v1",parentSchema:schema31.properties.schema_version,data:data0};
if(vErrors === null){
vErrors = [err5];
}
else {
vErrors.push(err5);
}
errors++;
}
}
if(data.package_name !== undefined){
let data1 = data.package_name;
if(typeof data1 === "string"){
if(!pattern4.test(data1)){
const err6 = {instancePath:instancePath+"/package_name",schemaPath:"#/properties/package_name/pattern",keyword:"pattern",params:{pattern: "^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f]{1,200}$"},message:"must match pattern \""+"^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f]{1,200}$"+"\"",schema:"^(?!\\.{1,2}$)[^/\\u0000-\\u001f\\u007f]{1,200}$",parentSchema:schema31.properties.package_name,data:data1};
if(vErrors === null){
vErrors = [err6];
}
else {
vErrors.push(err6);
}
errors++;
}
}
else {
const err7 = {instancePath:instancePath+"/package_name",schemaPath:"#/properties/package_name/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema31.properties.package_name.type,parentSchema:schema31.properties.package_name,data:data1};
if(vErrors === null){
vErrors = [err7];
}
else {
vErrors.push(err7);
}
errors++;
}
}
if(data.package_version !== undefined){
let data2 = data.package_version;
if(typeof data2 === "string"){
if(!pattern5.test(data2)){
const err8 = {instancePath:instancePath+"/package_version",schemaPath:"#/properties/package_version/pattern",keyword:"pattern",params:{pattern: "^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$"},message:"must match pattern \""+"^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$"+"\"",schema:"^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(?:-(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$",parentSchema:schema31.properties.package_version,data:data2};
if(vErrors === null){
vErrors = [err8];
}
else {
vErrors.push(err8);
}
errors++;
}
}
else {
const err9 = {instancePath:instancePath+"/package_version",schemaPath:"#/properties/package_version/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema31.properties.package_version.type,parentSchema:schema31.properties.package_version,data:data2};
if(vErrors === null){
vErrors = [err9];
}
else {
vErrors.push(err9);
}
errors++;
}
}
if(data.expected_config_files !== undefined){
let data3 = data.expected_config_files;
if(Array.isArray(data3)){
const len0 = data3.length;
for(let i0=0; i0<len0; i0++){
let data4 = data3[i0];
if(typeof data4 === "string"){
if(!pattern6.test(data4)){
const err10 = {instancePath:instancePath+"/expected_config_files/" + i0,schemaPath:"#/$defs/relativePath/pattern",keyword:"pattern",params:{pattern: "^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"},message:"must match pattern \""+"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$"+"\"",schema:"^(?![/])(?!(?:.*/)?\\.\\.(?:/|$))(?!.*/$)[^\\u0000-\\u001f\\u007f]+$",parentSchema:schema32,data:data4};
if(vErrors === null){
vErrors = [err10];
}
else {
vErrors.push(err10);
}
errors++;
}
}
else {
const err11 = {instancePath:instancePath+"/expected_config_files/" + i0,schemaPath:"#/$defs/relativePath/type",keyword:"type",params:{type: "string"},message:"must be string",schema:schema32.type,parentSchema:schema32,data:data4};
if(vErrors === null){
vErrors = [err11];
}
else {
vErrors.push(err11);
}
errors++;
}
}
}
else {
const err12 = {instancePath:instancePath+"/expected_config_files",schemaPath:"#/properties/expected_config_files/type",keyword:"type",params:{type: "array"},message:"must be array",schema:schema31.properties.expected_config_files.type,parentSchema:schema31.properties.expected_config_files,data:data3};
if(vErrors === null){
vErrors = [err12];
}
else {
vErrors.push(err12);
}
errors++;
}
}
if(data.modes !== undefined){
let data5 = data.modes;
if(data5 && typeof data5 == "object" && !Array.isArray(data5)){
for(const key0 in data5){
if(!(func1.call(schema31.properties.modes.properties, key0))){
const err13 = {instancePath:instancePath+"/modes",schemaPath:"#/properties/modes/additionalProperties",keyword:"additionalProperties",params:{additionalProperty: key0},message:"must NOT have additional properties",schema:false,parentSchema:schema31.properties.modes,data:data5};
if(vErrors === null){
vErrors = [err13];
}
else {
vErrors.push(err13);
}
errors++;
}
}
if(data5.apply !== undefined){
if(!(validate21(data5.apply, {instancePath:instancePath+"/modes/apply",parentData:data5,parentDataProperty:"apply",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["apply-check"] !== undefined){
if(!(validate21(data5["apply-check"], {instancePath:instancePath+"/modes/apply-check",parentData:data5,parentDataProperty:"apply-check",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5.config !== undefined){
if(!(validate21(data5.config, {instancePath:instancePath+"/modes/config",parentData:data5,parentDataProperty:"config",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["config-check"] !== undefined){
if(!(validate21(data5["config-check"], {instancePath:instancePath+"/modes/config-check",parentData:data5,parentDataProperty:"config-check",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5.upgrade !== undefined){
if(!(validate21(data5.upgrade, {instancePath:instancePath+"/modes/upgrade",parentData:data5,parentDataProperty:"upgrade",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["upgrade-check"] !== undefined){
if(!(validate21(data5["upgrade-check"], {instancePath:instancePath+"/modes/upgrade-check",parentData:data5,parentDataProperty:"upgrade-check",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5.uninstall !== undefined){
if(!(validate21(data5.uninstall, {instancePath:instancePath+"/modes/uninstall",parentData:data5,parentDataProperty:"uninstall",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["uninstall-check"] !== undefined){
if(!(validate21(data5["uninstall-check"], {instancePath:instancePath+"/modes/uninstall-check",parentData:data5,parentDataProperty:"uninstall-check",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["post-interrupt"] !== undefined){
if(!(validate21(data5["post-interrupt"], {instancePath:instancePath+"/modes/post-interrupt",parentData:data5,parentDataProperty:"post-interrupt",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5["post-interrupt-check"] !== undefined){
if(!(validate21(data5["post-interrupt-check"], {instancePath:instancePath+"/modes/post-interrupt-check",parentData:data5,parentDataProperty:"post-interrupt-check",rootData,dynamicAnchors}))){
vErrors = vErrors === null ? validate21.errors : vErrors.concat(validate21.errors);
errors = vErrors.length;
}
}
if(data5.interrupt !== undefined){
let data16 = data5.interrupt;
if(!(Array.isArray(data16))){
const err14 = {instancePath:instancePath+"/modes/interrupt",schemaPath:"#/properties/modes/properties/interrupt/type",keyword:"type",params:{type: "array"},message:"must be array",schema:schema31.properties.modes.properties.interrupt.type,parentSchema:schema31.properties.modes.properties.interrupt,data:data16};
if(vErrors === null){
vErrors = [err14];
}
else {
vErrors.push(err14);
}
errors++;
}
}
}
else {
const err15 = {instancePath:instancePath+"/modes",schemaPath:"#/properties/modes/type",keyword:"type",params:{type: "object"},message:"must be object",schema:schema31.properties.modes.type,parentSchema:schema31.properties.modes,data:data5};
if(vErrors === null){
vErrors = [err15];
}
else {
vErrors.push(err15);
}
errors++;
}
}
}
else {
const err16 = {instancePath,schemaPath:"#/type",keyword:"type",params:{type: "object"},message:"must be object",schema:schema31.type,parentSchema:schema31,data};
if(vErrors === null){
vErrors = [err16];
}
else {
vErrors.push(err16);
}
errors++;
}
validate20.errors = vErrors;
return errors === 0;
}
validate20.evaluated = {"props":{"schema_version":true,"package_name":true,"package_version":true,"expected_config_files":true,"modes":true},"dynamicProps":false,"dynamicItems":false};

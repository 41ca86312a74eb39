/* Runs an exported text classifier in C, without Python and TF Serving.
 *
 *   load_saved_model DIRECTORY INPUT PROBABILITIES LABEL LIBRARY... -- TEXT...
 *
 * DIRECTORY is the SavedModel. INPUT, PROBABILITIES and LABEL are the names of tensors of the
 * signature serving_default that `saved_model_cli show` prints (serving_default_text:0,
 * StatefulPartitionedCall:1, StatefulPartitionedCall:0). Each LIBRARY is a .so file of
 * tensorflow_text with kernels that the graph needs: _fast_sentencepiece_tokenizer.so.
 *
 * Prints the label and the probabilities of the classes for each text, separated by tabs. Labels
 * must be strings, as for models with activation="softmax". Takes a few seconds.
 * See docs/serving.md for the command that compiles it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static void fail(const char *what, const char *message) {
  fprintf(stderr, "load_saved_model: %s: %s\n", what, message);
  exit(1);
}

static void check(const TF_Status *status, const char *what) {
  if (TF_GetCode(status) != TF_OK) fail(what, TF_Message(status));
}

/* Returns the tensor with a name such as "StatefulPartitionedCall:1". */
static TF_Output tensor_named(TF_Graph *graph, const char *name) {
  char operation[256];
  const char *colon = strrchr(name, ':');
  if (colon == NULL || (size_t)(colon - name) >= sizeof operation)
    fail(name, "is not the name of a tensor, such as serving_default_text:0");
  memcpy(operation, name, (size_t)(colon - name));
  operation[colon - name] = '\0';
  TF_Output output = {TF_GraphOperationByName(graph, operation), atoi(colon + 1)};
  if (output.oper == NULL) fail(name, "is not a tensor of the graph; see saved_model_cli show");
  if (output.index < 0 || output.index >= TF_OperationNumOutputs(output.oper))
    fail(name, "is not an output of the operation");
  return output;
}

static TF_Tensor *string_tensor(char **texts, int count) {
  int64_t shape[1] = {count};
  TF_Tensor *tensor = TF_AllocateTensor(TF_STRING, shape, 1, (size_t)count * sizeof(TF_TString));
  TF_TString *strings = TF_TensorData(tensor);
  for (int i = 0; i < count; i++) {
    TF_StringInit(&strings[i]);
    TF_StringCopy(&strings[i], texts[i], strlen(texts[i]));
  }
  return tensor;
}

/* Long strings are stored outside of the tensor. TF_DeleteTensor frees them for tensors that
 * TensorFlow created, but not for tensors of TF_AllocateTensor. */
static void delete_string_tensor(TF_Tensor *tensor) {
  TF_TString *strings = TF_TensorData(tensor);
  for (int64_t i = 0; i < TF_TensorElementCount(tensor); i++) TF_StringDealloc(&strings[i]);
  TF_DeleteTensor(tensor);
}

static void print_rows(const TF_Tensor *probabilities, const TF_Tensor *label) {
  const float *values = TF_TensorData(probabilities);
  const TF_TString *names = TF_TensorData(label);
  int64_t num_classes = TF_Dim(probabilities, 1);
  for (int64_t row = 0; row < TF_Dim(probabilities, 0); row++) {
    printf("%.*s", (int)TF_StringGetSize(&names[row]), TF_StringGetDataPointer(&names[row]));
    /* Nine digits identify a float32 exactly. */
    for (int64_t i = 0; i < num_classes; i++) printf("\t%.9g", values[row * num_classes + i]);
    printf("\n");
  }
}

int main(int argc, char **argv) {
  int dashes = 5;
  while (dashes < argc && strcmp(argv[dashes], "--") != 0) dashes++;
  if (argc < 5 || dashes >= argc - 1) {
    fprintf(stderr, "usage: %s DIRECTORY INPUT PROBABILITIES LABEL LIBRARY... -- TEXT...\n",
            argv[0]);
    return 2;
  }
  TF_Status *status = TF_NewStatus();
  for (int i = 5; i < dashes; i++) {
    TF_LoadLibrary(argv[i], status);
    check(status, argv[i]);
  }

  const char *tags[] = {"serve"};
  TF_Graph *graph = TF_NewGraph();
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_Session *session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(status, argv[1]);

  TF_Output input = tensor_named(graph, argv[2]);
  TF_Output outputs[2] = {tensor_named(graph, argv[3]), tensor_named(graph, argv[4])};
  if (TF_OperationOutputType(input) != TF_STRING) fail(argv[2], "is not a tensor of strings");
  if (TF_OperationOutputType(outputs[0]) != TF_FLOAT) fail(argv[3], "is not a tensor of floats");
  if (TF_OperationOutputType(outputs[1]) != TF_STRING) fail(argv[4], "is not a tensor of strings");

  TF_Tensor *texts = string_tensor(argv + dashes + 1, argc - dashes - 1);
  TF_Tensor *results[2] = {NULL, NULL};
  TF_SessionRun(session, NULL, &input, &texts, 1, outputs, results, 2, NULL, 0, NULL, status);
  check(status, "run");
  print_rows(results[0], results[1]);

  delete_string_tensor(texts);
  TF_DeleteTensor(results[0]);
  TF_DeleteTensor(results[1]);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}

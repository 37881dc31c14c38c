namespace pawl {

struct Link {
  int number;
};

}  // namespace pawl
